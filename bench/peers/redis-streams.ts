import { createClient } from '@redis/client'
import type { Opened, Parcel, Place } from '../contender.ts'

const STREAM = 'parcels'
const GROUP = 'workers'
const COUNT = '256'
const BLOCK_MS = '1000'

/** The client alone: a stream and one group; commands of one turn of the event loop leave in one write. */
export async function open(place: Place, _variant: string): Promise<Opened> {
  const connect = async (): Promise<Client> => {
    const client = createClient({ url: place.url, RESP: 2 })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const client = await connect()
  await client.sendCommand(['XGROUP', 'CREATE', STREAM, GROUP, '0', 'MKSTREAM'])
  const clients = [client]
  const send = async (parcel: Parcel): Promise<void> => {
    const fields = ['id', crypto.randomUUID(), 'body', JSON.stringify(parcel)]
    await client.sendCommand(['XADD', STREAM, '*', ...fields])
  }
  return {
    send,
    async sendMany(parcels) {
      await Promise.all(parcels.map(send))
    },
    async work(run) {
      const reading = await connect()
      clients.push(reading)
      consumeAll(reading, client, run).catch(() => {})
    },
    remaining: async () => Number(await client.sendCommand(['XLEN', STREAM])),
    async close() {
      for (const one of clients) one.destroy()
    },
  }
}

type Client = Pick<ReturnType<typeof createClient>, 'sendCommand' | 'destroy'>
type Entries = readonly (readonly [id: string, fields: readonly string[]])[]

/** The next ones are read while these are acked. */
async function consumeAll(
  reading: Client,
  acking: Client,
  run: (parcel: Parcel) => void,
): Promise<void> {
  const from = ['GROUP', GROUP, 'one', 'COUNT', COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', STREAM, '>']
  let acked: Promise<unknown> = Promise.resolve()
  for (;;) {
    const answer = (await reading.sendCommand(['XREADGROUP', ...from])) as
      | readonly (readonly [stream: string, entries: Entries])[]
      | null
    const entries = answer?.[0]?.[1] ?? []
    if (entries.length === 0) continue
    for (const [, fields] of entries) run(JSON.parse(fields[3] ?? ''))
    const ids = entries.map(([id]) => id)
    await acked
    acked = Promise.all([
      acking.sendCommand(['XACK', STREAM, GROUP, ...ids]),
      acking.sendCommand(['XDEL', STREAM, ...ids]),
    ])
  }
}
