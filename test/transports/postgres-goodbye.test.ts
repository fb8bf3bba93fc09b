import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../src/model/clock.ts'
import { type PgAddress, pgPool } from '../../src/sql/pg-open.ts'
import { nodePool, postgresServers } from './postgres-servers.ts'

const READY = Buffer.from('Z\0\0\0\x05I')
/** What `pg_terminate_backend` and a fast shutdown say: a message of type E, with its length and its fields. */
const GOODBYE = message(
  'E',
  'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0',
)
const GLUED = 3
const clock = systemClock()

const clients: Readonly<Record<string, (t: TestContext, url: string) => PgAddress>> = {
  'an address': (_, url) => ({ url }),
  'a pool of pg': (t, url) => {
    const pool = nodePool(url)
    t.after(() => pool.end())
    return { pool }
  },
}

for (const [what, addressOf] of Object.entries(clients)) {
  for (const { name, url } of postgresServers().slice(0, 1)) {
    test(`${name}, ${what}: a connection that the server ends as it opens it is an error of the call, and does not end the process.`, async (t) => {
      const door = await hastyServer(t, url)
      const pool = await pgPool(addressOf(t, door.url), { clock })
      t.after(() => pool.close())
      for (let n = 0; n < GLUED; n += 1) {
        const error = await pool.query('SELECT 1 AS one', []).then(
          () => undefined,
          (cause: unknown) => cause,
        )
        assert.ok(error instanceof Error, String(error))
      }
      assert.equal(door.glued(), GLUED)
      assert.deepEqual(await pool.query('SELECT 1 AS one', []), [{ one: 1 }])
    })
  }
}

/** The server, but of the first connections its goodbye comes in one packet with its word that they are ready. */
async function hastyServer(t: TestContext, url: string) {
  const server = new URL(url)
  const open = new Set<Socket>()
  let glued = 0
  const keep = (socket: Socket): void => {
    open.add(socket)
    socket.on('error', () => {})
  }
  const proxy = createServer((near) => {
    const far = connect(Number(server.port), server.hostname)
    keep(near)
    keep(far)
    near.pipe(far)
    near.on('close', () => far.destroy())
    far.on('close', () => near.end())
    far.on('data', (bytes) => {
      if (glued >= GLUED || !bytes.includes(READY)) return near.write(bytes)
      glued += 1
      near.end(Buffer.concat([bytes, GOODBYE]))
      far.destroy()
      return false
    })
  })
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  t.after(() => {
    for (const socket of open) socket.destroy()
    proxy.close()
  })
  const door = new URL(url)
  door.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return { url: door.href, glued: () => glued }
}

function message(type: string, fields: string): Buffer {
  const body = Buffer.from(fields)
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
