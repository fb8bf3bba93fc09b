import '../../model/node-version.ts'

export type {
  AmqpChannel,
  AmqpConfirmChannel,
  AmqpConnection,
  AmqpMessage,
  AmqpProperties,
} from './amqp-shapes.ts'
export type {
  RabbitmqAddress,
  RabbitmqNames,
  RabbitmqOptions,
  RabbitmqSettings,
} from './options.ts'
export { rabbitmq } from './rabbitmq.ts'
