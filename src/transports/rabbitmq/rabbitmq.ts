import { closedError } from '../../model/closed-error.ts'
import { MillraceError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import type { ConnectContext, Connector, Transport } from '../../transport/transport.ts'
import type { AmqpConnection } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { type Link, openLink } from './link.ts'
import { type RabbitmqOptions, type Resolved, resolve } from './options.ts'
import { serverOf } from './server.ts'
import { rabbitTransport } from './transport.ts'

/**
 * Queues of RabbitMQ, quorum queues by default, from 3.10 on.
 *
 * @example
 * const app = await createMillrace({ transport: rabbitmq({ url: 'amqp://localhost' }), store, queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function rabbitmq(options: RabbitmqOptions): Connector {
  const resolved = resolve(options)
  return { name: 'rabbitmq', connect: (context) => connect(resolved, context) }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { signal, clock, random, logger } = context
  signal.throwIfAborted()
  const open = opener(options, random)
  const closing = new AbortController()
  const links: Link[] = []
  try {
    for (const purpose of ['consuming', 'publishing'] as const) {
      links.push(await openLink({ purpose, open, clock, random, logger }))
      signal.throwIfAborted()
    }
    const [consuming, publishing] = links
    if (consuming === undefined || publishing === undefined) throw new Error('no connection')
    const server = serverOf(consuming.current())
    const parts = { options, server, publishing, consuming, clock, random, logger }
    const broker: Broker = { ...parts, closing: closing.signal }
    return rabbitTransport(broker, async () => {
      closing.abort(closedError('the transport'))
      await Promise.all(links.map((link) => link.close()))
    })
  } catch (error) {
    await Promise.all(links.map((link) => link.close()))
    throw error
  }
}

const CONNECT_TIMEOUT_MS = 10_000

function opener(
  { address, heartbeatMs, timeoutMs }: Resolved,
  random: () => number,
): () => Promise<AmqpConnection> {
  if (address.connect !== undefined) return address.connect
  const { url, socket } = address
  const urls = typeof url === 'string' ? [url] : url
  let next = Math.floor(random() * urls.length)
  return async () => {
    const { connect: open } = await loadClient()
    const target = new URL(urls[next % urls.length] ?? '')
    next += 1
    if (!target.searchParams.has('heartbeat')) {
      target.searchParams.set('heartbeat', String(Math.ceil(heartbeatMs / 1_000)))
    }
    const opened = open(target.href, {
      noDelay: true,
      keepAlive: true,
      timeout: Math.min(timeoutMs, CONNECT_TIMEOUT_MS),
      clientProperties: { connection_name: 'millrace' },
      ...socket,
    })
    return await opened.catch((error: unknown) => {
      throw vhostError(error, target) ?? error
    })
  }
}

/** The broker closes such a connection without a reason that the client hands on. */
function vhostError(cause: unknown, { pathname }: URL): MillraceError | undefined {
  const message = read(cause, 'message')
  if (typeof message !== 'string' || !message.startsWith('Expected ConnectionOpenOk'))
    return undefined
  const vhost = decodeURIComponent(pathname.slice(1)) || '/'
  return new MillraceError(
    'MILLRACE_DENIED',
    `rabbitmq: the broker lets this account not into vhost "${vhost}"; make the vhost, give the account rights on it, or correct the end of the url`,
    { cause },
  )
}

async function loadClient(): Promise<typeof import('amqplib')> {
  try {
    return await import('amqplib')
  } catch (cause) {
    if (read(cause, 'code') !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      'rabbitmq({ url }) needs the package amqplib: npm install amqplib, or pass connect',
      { cause },
    )
  }
}
