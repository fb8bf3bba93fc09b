import type { MillraceOptions } from 'millrace'
import { kafka } from 'millrace/kafka'
import { memory } from 'millrace/memory'
import { nats } from 'millrace/nats'
import { postgres } from 'millrace/postgres'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqlite } from 'millrace/sqlite'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { type BackendName, backendUrl } from '../backends.ts'
import { dropSchema, freshSchema } from '../transports/postgres-servers.ts'
import { deleteLanes, withChannel } from '../transports/rabbitmq-subjects.ts'
import { databaseFile } from '../transports/sqlite-harness.ts'

/** Of every lane and partition that there is: those of `orderedKeys` are in lanes of their own. */
const LANES = 16

/** All apps that are opened with the options share the queue, and what its limits know. */
export interface OpenedOrder {
  options(): Pick<MillraceOptions, 'transport' | 'store'>
  dispose(): Promise<void>
}

/** A backend that keeps the order of keys. */
export interface OrderingPlace {
  readonly name: string
  open(queue: string): Promise<OpenedOrder>
}

const account = {
  region: 'elasticmq',
  credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
} as const

const nothing = async (): Promise<void> => undefined

/** A broker has no place for what the limits know. */
function withStore(
  transport: () => MillraceOptions['transport'],
  dispose: () => Promise<void> = nothing,
): OpenedOrder {
  const store = memoryStore()
  return { options: () => ({ transport: transport(), store }), dispose }
}

const servers: readonly (readonly [
  string,
  BackendName,
  (url: string, queue: string) => OpenedOrder,
])[] = [
  [
    'postgres',
    'postgres 18',
    (url) => {
      const schema = freshSchema()
      const options = () => ({ transport: postgres({ url, schema }) })
      return { options, dispose: () => dropSchema(url, schema) }
    },
  ],
  [
    'redis',
    'redis 7',
    (url, queue) => ({
      options: () => ({ transport: redis({ url, prefix: queue }) }),
      dispose: nothing,
    }),
  ],
  ['nats', 'nats', (url) => withStore(() => nats({ servers: url, lanes: LANES }))],
  [
    'rabbitmq',
    'rabbitmq',
    (url, queue) =>
      withStore(
        () => rabbitmq({ url, lanes: LANES }),
        () => withChannel(url, (channel) => deleteLanes(channel, queue, LANES)),
      ),
  ],
  [
    'kafka',
    'kafka',
    (broker) => withStore(() => kafka({ brokers: [broker], partitions: LANES, retry: 'hold' })),
  ],
  [
    'sqs fifo',
    'sqs elasticmq',
    (endpoint) => withStore(() => sqs({ ...account, endpoint, kind: 'fifo' })),
  ],
]

/** Each that is here. */
export function orderingPlaces(): readonly OrderingPlace[] {
  const own: readonly OrderingPlace[] = [
    {
      name: 'memory',
      open: async () => {
        const transport = memory()
        return { options: () => ({ transport }), dispose: nothing }
      },
    },
    {
      name: 'sqlite',
      open: async () => {
        const { file, dispose } = await databaseFile()
        return { options: () => ({ transport: sqlite({ file }) }), dispose }
      },
    },
  ]
  const far = servers.flatMap(([name, backend, open]): readonly OrderingPlace[] => {
    const url = backendUrl(backend)
    return url === undefined ? [] : [{ name, open: async (queue) => open(url, queue) }]
  })
  return [...own, ...far]
}
