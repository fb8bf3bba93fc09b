import '../../model/node-version.ts'

export { type PostgresOptions, type PostgresSettings, postgres } from './postgres.ts'
