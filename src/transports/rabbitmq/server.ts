import { readString } from '../../model/probe.ts'
import type { AmqpConnection } from './amqp-shapes.ts'

/** What the server says of itself when a connection opens. */
export interface Server {
  readonly product: string
  readonly version: string
  /** Time to live and at-least-once dead lettering on quorum queues, from 3.10. */
  readonly hasQuorumTtl: boolean
  /** A delivery limit of 20 unless a queue says otherwise, and -1 to have none, from 4.0. Not run against 4.x. */
  readonly limitsDeliveries: boolean
}

export function serverOf({ connection }: AmqpConnection): Server {
  const { serverProperties } = connection
  const version = readString(serverProperties, 'version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return {
    product: readString(serverProperties, 'product') ?? 'an AMQP broker',
    version,
    hasQuorumTtl: major > 3 || (major === 3 && minor >= 10),
    limitsDeliveries: major >= 4,
  }
}
