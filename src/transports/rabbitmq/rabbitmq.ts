import { closedError } from '../../model/closed-error.ts'
import { hasCode, MillraceError } from '../../model/errors.ts'
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
  const openNext = async (client: typeof import('amqplib')): Promise<AmqpConnection> => {
    const target = new URL(urls[next % urls.length] ?? '')
    next += 1
    if (!target.searchParams.has('heartbeat')) {
      target.searchParams.set('heartbeat', String(Math.ceil(heartbeatMs / 1_000)))
    }
    const opened = client.connect(target.href, {
      noDelay: true,
      keepAlive: true,
      timeout: Math.min(timeoutMs, CONNECT_TIMEOUT_MS),
      clientProperties: { connection_name: 'millrace' },
      ...socket,
    })
    return await opened.catch((error: unknown) => {
      throw loginError(error) ?? vhostError(error, target) ?? error
    })
  }
  return async () => {
    const client = await loadClient()
    for (let left = urls.length - 1; ; left--) {
      try {
        return await openNext(client)
      } catch (error) {
        // A host may be away while others serve; whoever lets this account not in says the same on all.
        if (left <= 0 || hasCode(error, 'MILLRACE_DENIED')) throw error
      }
    }
  }
}

function loginError(cause: unknown): MillraceError | undefined {
  const message = read(cause, 'message')
  if (typeof message !== 'string' || !message.includes('ACCESS-REFUSED')) return undefined
  const mechanism = /mechanism (\w+)/.exec(message)?.[1] ?? 'unknown'
  return new MillraceError(
    'MILLRACE_DENIED',
    `rabbitmq: the broker does not let this account in (mechanism ${mechanism}); check user and password of the url or the credentials in socket (guest is let in from the broker's own machine alone)`,
    { cause },
  )
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
