export { type PostgresOptions, type PostgresSettings, postgres } from './postgres.ts'
