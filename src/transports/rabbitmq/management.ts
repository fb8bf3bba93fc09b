import { MillraceError } from '../../model/errors.ts'
import { isObject, read } from '../../model/probe.ts'
import { serverVhost } from './address.ts'
import type { Broker } from './broker.ts'
import { withinLimit } from './limit.ts'
import { messageOf } from './link.ts'
import type { QueueFacts, Value } from './queue-facts.ts'

/** What the management API says of a queue, policies included. */
export async function managementQueue(
  broker: Broker,
  managementUrl: string,
  queue: string,
  signal: AbortSignal,
): Promise<QueueFacts> {
  const path = `queues/{vhost}/${encodeURIComponent(queue)}`
  const said = await askManagement(broker, managementUrl, path, `queue "${queue}"`, signal)
  return {
    durable: read(said, 'durable') === true,
    autoDelete: read(said, 'auto_delete') === true,
    arguments: valuesOf(read(said, 'arguments')),
    policy: valuesOf(read(said, 'effective_policy_definition')),
  }
}

/**
 * @param path below `api/`; `{vhost}` stands for the connection's own
 * @throws MILLRACE_UNAVAILABLE when it does not answer, or not with what was asked
 */
export async function askManagement(
  broker: Broker,
  managementUrl: string,
  path: string,
  what: string,
  signal: AbortSignal,
): Promise<unknown> {
  const vhost = encodeURIComponent(serverVhost(broker.options.address))
  const url = new URL(`api/${path.replace('{vhost}', () => vhost)}`, folder(managementUrl))
  const authorization = `Basic ${btoa(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`)}`
  url.username = ''
  url.password = ''
  const request = fetch(url, { headers: { authorization }, signal }).then(async (answer) => {
    if (answer.ok) return (await answer.json()) as unknown
    throw new Error(`it answered ${answer.status}`)
  })
  try {
    return await withinLimit(broker, 'the management API', request, signal)
  } catch (error) {
    throw new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `rabbitmq: the management API cannot say what ${what} is (${messageOf(error)}); check management.url and its account`,
      { cause: error, retryable: true },
    )
  }
}

/** Paths are relative to it. */
function folder(url: string): string {
  return url.endsWith('/') ? url : `${url}/`
}

function valuesOf(object: unknown): ReadonlyMap<string, Value> {
  const values = new Map<string, Value>()
  if (!isObject(object)) return values
  for (const [name, value] of Object.entries(object)) {
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      values.set(name, value)
    }
  }
  return values
}
