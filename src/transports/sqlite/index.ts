import '../../model/node-version.ts'

export type { Synchronous } from '../../sql/sqlite-open.ts'
export { type SqliteOptions, type SqliteSettings, sqlite } from './sqlite.ts'
