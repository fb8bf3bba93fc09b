import '../model/node-version.ts'

export type { StuckRow, StuckRows } from '../transport/stuck-rows.ts'
export type {
  Outbox,
  OutboxConnector,
  OutboxContext,
  OutboxRow,
  OutboxTransaction,
  Publish,
  RelayFailure,
  RelayPass,
} from './outbox.ts'
export { type PostgresOutboxOptions, postgresOutbox } from './postgres-outbox.ts'
export {
  type SqliteOutboxOptions,
  type SqliteOutboxSettings,
  sqliteOutbox,
} from './sqlite-outbox.ts'
