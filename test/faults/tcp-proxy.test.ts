import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { eventually } from '../examples/child.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

/** A client of the proxy, with all that it heard and what the server heard from it. */
interface Client {
  readonly socket: Socket
  heard(): string
  says(words: string): void
  hears(words: string): Promise<unknown>
}

interface Bench {
  readonly proxy: TcpProxy
  /** All that the server heard. */
  received(): string
  client(): Promise<Client>
}

/** The server repeats what it hears. */
async function bench(t: TestContext): Promise<Bench> {
  let received = ''
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        received += bytes
        socket.write(bytes)
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  const proxy = await tcpProxy(address.port)
  t.after(async () => {
    await proxy.close()
    await new Promise((resolve) => server.close(resolve))
  })
  return { proxy, received: () => received, client: () => dial(t, proxy.port) }
}

async function dial(t: TestContext, port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let heard = ''
  socket
    .on('error', () => {})
    .on('data', (bytes) => {
      heard += bytes
    })
  await new Promise<void>((resolve) => {
    socket.once('connect', () => resolve()).once('close', () => resolve())
  })
  return {
    socket,
    heard: () => heard,
    says: (words) => void socket.write(words),
    hears: (words) =>
      eventually(
        async () => heard,
        (all) => all.endsWith(words),
        5_000,
      ),
  }
}

async function talk(client: Client, words: string): Promise<void> {
  client.says(words)
  await client.hears(words)
}

test('what is said passes both ways, and an end after it, too', async (t) => {
  const { proxy, client } = await bench(t)
  const one = await client()
  const long = 'x'.repeat(3_000_000)
  one.socket.end(long)
  await once(one.socket, 'close')
  assert.equal(one.heard(), long)
  await eventually(
    async () => proxy.open(),
    (open) => open === 0,
  )
})

test('cut ends open connections, and new ones work', async (t) => {
  const { proxy, client } = await bench(t)
  const one = await client()
  await talk(one, 'a')
  proxy.cut()
  await once(one.socket, 'close')
  await talk(await client(), 'b')
})

test('refuse turns new connections away, leaves open ones, and ends with heal', async (t) => {
  const { proxy, client } = await bench(t)
  const one = await client()
  await talk(one, 'a')
  proxy.refuse()
  assert.equal((await client()).socket.destroyed, true)
  await talk(one, 'b')
  await proxy.heal()
  await talk(await client(), 'c')
  await talk(one, 'd')
})

test('a black hole takes all and tells nobody, and what was in it stays silent', async (t) => {
  const { proxy, client, received } = await bench(t)
  const one = await client()
  await talk(one, 'a')
  proxy.blackHole()
  const two = await client()
  one.says('lost')
  two.says('lost')
  await proxy.heal()
  one.says('lost, too')
  await talk(await client(), 'b')
  assert.equal(received(), 'ab')
  assert.equal(one.heard() + two.heard(), 'a')
  assert.equal(one.socket.destroyed || two.socket.destroyed, false)
})

test('one direction can be blocked: the server hears, and its answer is lost', async (t) => {
  const { proxy, client, received } = await bench(t)
  const one = await client()
  proxy.block('down')
  one.says('a')
  await eventually(
    async () => received(),
    (all) => all === 'a',
  )
  await proxy.heal()
  const two = await client()
  await talk(two, 'b')
  proxy.block('up')
  two.says('lost')
  await proxy.heal()
  await talk(await client(), 'c')
  assert.equal(received(), 'abc')
  assert.equal(one.heard(), '')
})

test('slow delays each way and keeps the order, also when it ends in between', async (t) => {
  const { proxy, client, received } = await bench(t)
  const one = await client()
  await talk(one, 'a')
  proxy.slow(150)
  const startedAt = performance.now()
  one.says('b')
  await one.hears('b')
  assert.ok(performance.now() - startedAt >= 295)
  one.says('c')
  await eventually(
    async () => received(),
    (all) => all === 'abc',
  )
  await proxy.heal()
  one.says('d')
  await one.hears('d')
  assert.equal(one.heard(), 'abcd')
})

test('close ends all, and may be called twice', async (t) => {
  const { proxy, client } = await bench(t)
  const one = await client()
  await talk(one, 'a')
  await Promise.all([proxy.close(), proxy.close()])
  await eventually(
    async () => one.socket.destroyed,
    (gone) => gone,
  )
  assert.equal((await client()).socket.destroyed, true)
  await proxy.heal()
  assert.equal((await client()).socket.destroyed, true)
})
