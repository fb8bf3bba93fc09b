import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'

/** What `intake` takes. Here, below the intake, because a config file holds them too. */
export interface IntakeOptions {
  /** Address to listen on. Anything but loopback needs `tokens`. Default 127.0.0.1. */
  readonly host?: string
  /** 0 takes a free one. Default 4000. */
  readonly port?: number
  /** Bearer tokens that may send, 1 to 1,024 printable ASCII characters each. Default none: whoever reaches the port. */
  readonly tokens?: readonly string[]
  /** Names of the queues that take messages. Default: all queues of the app. */
  readonly queues?: readonly string[]
  /** Larger bodies are 413. In bytes, 1 to 67,108,864. Default 1,048,576. */
  readonly maxBodyBytes?: number
  /** A request must have arrived within this time (408), in ms, 100 to 600,000. Default 10,000. */
  readonly requestTimeoutMs?: number
  /** The backend must have confirmed within this time (503), in ms, 100 to 600,000. Default 10,000. */
  readonly sendTimeoutMs?: number
  /** Open connections, 1 to 100,000. Default 1,000. */
  readonly maxConnections?: number
  /** Where failures that are not the sender's are written. Default: nowhere. */
  readonly logger?: Logger
  /** Default: the machine's. */
  readonly clock?: Clock
}
