/**
 * How a delay of any length is made of queues with a fixed time to live: one queue for each power of two, from 64 ms.
 * The bits of a message's delay stand in its routing key; at each level an exchange sends it into the level's queue
 * (1) or past it (0). Within one queue all wait equally long, so nobody holds up anybody
 * (docs/decisions/0007-rabbitmq.md).
 */
export interface Level {
  readonly exchange: string
  readonly queue: string
  readonly ttlMs: number
  /** Where the level below begins. */
  readonly next: string
  readonly waits: string
  readonly passes: string
}

/** The shortest wait: delays are rounded up to a multiple of it. */
export const UNIT_MS = 64
/** The largest is 2^31 ms; RabbitMQ takes a time to live of less than 2^32 ms. */
const LEVELS = 26
export const DELAY_MAX_MS: number = UNIT_MS * (2 ** LEVELS - 1)

/** Of a routing key, in bytes (AMQP 0-9-1, shortstr). */
export const ROUTING_KEY_MAX = 255

export interface Ladder {
  /** Longest first. */
  readonly levels: readonly Level[]
  /** Where messages fall out at the end, to be sent to their queues. */
  readonly landing: string
  /** Who cannot be sent to its queue, because that was deleted, is kept here. */
  readonly stranded: string
}

export function ladder(prefix: string): Ladder {
  const landing = `${prefix}.landing`
  const levels = Array.from({ length: LEVELS }, (_, at): Level => {
    const bit = LEVELS - 1 - at
    const name = levelName(prefix, bit)
    const skipped = '*.'.repeat(at)
    return {
      exchange: name,
      queue: name,
      ttlMs: UNIT_MS * 2 ** bit,
      next: bit === 0 ? landing : levelName(prefix, bit - 1),
      waits: `${skipped}1.#`,
      passes: `${skipped}0.#`,
    }
  })
  return { levels, landing, stranded: `${prefix}.stranded` }
}

function levelName(prefix: string, bit: number): string {
  return `${prefix}.${String(bit).padStart(2, '0')}`
}

/** Where a message with this delay goes in. Undefined when there is nothing to wait for. */
export function entrance(
  prefix: string,
  queue: string,
  delayMs: number,
): { readonly exchange: string; readonly routingKey: string } | undefined {
  const units = Math.ceil(delayMs / UNIT_MS)
  if (units <= 0) return undefined
  const bits = units.toString(2)
  const all = bits.padStart(LEVELS, '0')
  return {
    exchange: levelName(prefix, bits.length - 1),
    routingKey: `${all.split('').join('.')}.${word(queue)}`,
  }
}

/** Binds a queue to the landing, whatever its delay was. */
export function landingKey(queue: string): string {
  return `${'*.'.repeat(LEVELS)}${word(queue)}`
}

/** One word of a routing key: dots separate words, and a star or a hash alone stand for others. */
function word(queue: string): string {
  return queue.replace(/[%.*#]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
}
