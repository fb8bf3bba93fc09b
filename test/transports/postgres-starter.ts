// Opens an app on Postgres, and starts it when its input ends: URL SCHEMA
import { text } from 'node:stream/consumers'
import { createMillrace, defineQueue } from 'millrace'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'

const [url = '', schema = ''] = process.argv.slice(2)
const queue = defineQueue({ name: 'orders', owner: 'team', payload: z.number() })
const transport = postgres({ url, schema })
const app = await createMillrace({ transport, queues: [queue], signals: true })
app.work(queue, () => undefined)
process.stdout.write('open\n')
await text(process.stdin)
await app.start()
