import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { dropSchema, freshSchema } from '../transports/postgres-servers.ts'
import { freshPrefix } from '../transports/redis-servers.ts'
import type { LimitedPlace } from './limited-app.ts'
import { limitedCampaign } from './limited-campaign.ts'

const recordFile = (folder: string): string => join(folder, 'runs.ndjson')
const places = new Map<string, (folder: string) => LimitedPlace>([
  [
    'sqlite',
    (folder) => ({
      ...{ kind: 'sqlite', file: join(folder, 'app.db') },
      recordFile: recordFile(folder),
    }),
  ],
])
const redis = backendUrl('redis 7')
if (redis !== undefined) {
  places.set('redis', (folder) => {
    return { kind: 'redis', url: redis, prefix: freshPrefix(), recordFile: recordFile(folder) }
  })
}
const pg = backendUrl('postgres 18')
if (pg !== undefined) {
  places.set('postgres', (folder) => {
    return { kind: 'postgres', url: pg, schema: freshSchema(), recordFile: recordFile(folder) }
  })
}

// They mostly wait for leases to end.
describe('concurrency limits', { concurrency: true }, () => {
  for (const [name, placeIn] of places) {
    test(`${name}: workers are killed and stopped; no more run than may, no slot is leaked, and who returns is told`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-limited-'))
      const place = placeIn(folder)
      try {
        await limitedCampaign(place)
      } finally {
        if (place.kind === 'postgres') await dropSchema(place.url, place.schema)
        await rm(folder, { recursive: true, force: true })
      }
    })
  }
})
