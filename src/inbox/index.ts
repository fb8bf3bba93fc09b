import '../model/node-version.ts'

export type { PgTransactionClient, PgTransactionOf } from '../sql/pg-transaction-type.ts'
export type {
  Inbox,
  InboxConnector,
  InboxContext,
  InboxKey,
  InboxOutcome,
  InboxWork,
} from './inbox.ts'
export {
  type PostgresInboxPool,
  type PostgresInboxSettings,
  type PostgresInboxUrl,
  postgresInbox,
} from './postgres-inbox.ts'
export {
  type SqliteInboxFile,
  type SqliteInboxHandle,
  type SqliteInboxSettings,
  sqliteInbox,
} from './sqlite-inbox.ts'
