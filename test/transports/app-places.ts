import type { Connector } from 'millrace'
import { postgres } from 'millrace/postgres'
import { sqlite } from 'millrace/sqlite'
import { dropSchema, freshSchema, postgresServers } from './postgres-servers.ts'
import { databaseFile } from './sqlite-harness.ts'

/** Where an app can keep its queues; empty, and its own, each time it is opened. */
export interface AppPlace {
  readonly name: string
  readonly open: () => Promise<{ transport: Connector; dispose: () => Promise<void> }>
}

/** SQLite, and each Postgres that is there. */
export const sqlPlaces: readonly AppPlace[] = [
  {
    name: 'sqlite',
    open: async () => {
      const { file, dispose } = await databaseFile()
      return { transport: sqlite({ file }), dispose }
    },
  },
  ...postgresServers().map(({ name, url }) => ({
    name,
    open: async () => {
      const schema = freshSchema()
      return { transport: postgres({ url, schema }), dispose: () => dropSchema(url, schema) }
    },
  })),
]
