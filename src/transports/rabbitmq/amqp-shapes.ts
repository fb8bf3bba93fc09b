/** The parts of amqplib that we use; any version from 2.3 has them. */
export interface AmqpConnection {
  createChannel(): Promise<AmqpChannel>
  createConfirmChannel(): Promise<AmqpConfirmChannel>
  close(): Promise<void>
  on(event: string, listener: (value?: unknown) => void): unknown
  readonly connection: { readonly serverProperties: object }
}

/** AMQP's word for giving a message back; ours is release. */
export const giveBack: 'nack' = 'nack'

export interface AmqpChannel {
  on(event: string, listener: (value?: unknown) => void): unknown
  close(): Promise<void>
  assertQueue(queue: string, options: object): Promise<{ readonly messageCount: number }>
  checkQueue(
    queue: string,
  ): Promise<{ readonly messageCount: number; readonly consumerCount: number }>
  bindQueue(queue: string, source: string, pattern: string): Promise<unknown>
  assertExchange(exchange: string, type: string, options: object): Promise<unknown>
  checkExchange(exchange: string): Promise<unknown>
  bindExchange(destination: string, source: string, pattern: string): Promise<unknown>
  consume(
    queue: string,
    onMessage: (message: AmqpMessage | null) => void,
  ): Promise<{ readonly consumerTag: string }>
  cancel(consumerTag: string): Promise<unknown>
  ack(message: AmqpMessage, upTo: boolean): void
  [giveBack](message: AmqpMessage, upTo: boolean, again: boolean): void
  prefetch(count: number): Promise<unknown>
}

export interface AmqpConfirmChannel extends AmqpChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: AmqpProperties,
    confirmed: (error: unknown) => void,
  ): boolean
}

/** What we write, and how; foreign messages have more. */
export interface AmqpProperties {
  /** Comes back when no queue takes it. */
  readonly mandatory: true
  readonly persistent: true
  readonly messageId: string
  /** Seconds. */
  readonly timestamp: number
  /** What is undefined is left out. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly priority?: number
}

export interface AmqpMessage {
  readonly content: Buffer
  readonly fields: {
    readonly deliveryTag: number
    readonly redelivered: boolean
    readonly exchange: string
    readonly routingKey: string
  }
  readonly properties: {
    readonly messageId?: unknown
    readonly timestamp?: unknown
    readonly priority?: unknown
    readonly headers?: Readonly<Record<string, unknown>> | undefined
  }
}
