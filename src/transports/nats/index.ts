import '../../model/node-version.ts'

export type { NatsAddress } from './client.ts'
export type { PhysicalNames, QueuePlace } from './names.ts'
export { type NatsOptions, nats } from './nats.ts'
export type { NatsSettings } from './options.ts'
