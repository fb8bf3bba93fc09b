import '../../model/node-version.ts'

export type { KafkaConnection, KafkaSasl, Secret } from './connection.ts'
export { kafka } from './kafka.ts'
export type {
  KafkaAddress,
  KafkaDeadLetters,
  KafkaNames,
  KafkaOptions,
  KafkaRetry,
  KafkaSettings,
} from './options.ts'
