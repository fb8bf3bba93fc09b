import { readString } from '../../model/probe.ts'
import type { AmqpConnection } from './amqp-shapes.ts'

/** What the server says of itself when a connection opens. */
export interface Server {
  readonly product: string
  readonly version: string
  /** Time to live and at-least-once dead lettering on quorum queues, from 3.10. */
  readonly hasQuorumTtl: boolean
  /** A queue may have a consumer timeout of its own, from 3.12. Not run there. */
  readonly hasQueueTimeout: boolean
  /** A delivery limit of 20 unless a queue says otherwise, and -1 to have none, from 4.0. Not run against 4.x. */
  readonly limitsDeliveries: boolean
}

export function serverOf({ connection }: Pick<AmqpConnection, 'connection'>): Server {
  const { serverProperties } = connection
  const version = readString(serverProperties, 'version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isFrom3 = (from: number): boolean => major > 3 || (major === 3 && minor >= from)
  return {
    product: readString(serverProperties, 'product') ?? 'an AMQP broker',
    version,
    hasQuorumTtl: isFrom3(10),
    hasQueueTimeout: isFrom3(12),
    limitsDeliveries: major >= 4,
  }
}
