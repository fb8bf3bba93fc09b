/** Where a queue lives on the server; each name can be said by the user. */
export interface PhysicalNames {
  /** The stream of the queue, with work-queue retention. */
  readonly stream: string
  /** What senders publish to, other programs included. */
  readonly subject: string
  /** The durable pull consumer that all workers share. */
  readonly consumer: string
  /** The stream of dead letters, attempts and audit. */
  readonly shelf: string
}

/** What is said of one queue alone. */
export interface QueuePlace extends Partial<PhysicalNames> {
  /** How many lanes, if it has an ordering key; instead of the option `lanes`. */
  readonly lanes?: number
}

/** All of one queue: its names and the subjects that are ours alone. */
export interface QueueNames extends PhysicalNames {
  readonly queue: string
  /**
   * Messages of one lane of so many. The number is a part of it: a program that counts on another number publishes to a subject
   * that nobody takes, and hears of it.
   */
  readonly lane: (lane: number, lanes: number) => string
  readonly laneConsumer: (lane: number) => string
  /** Scheduled messages, one subject per id. */
  readonly later: (id: string) => string
  readonly laterAll: string
  readonly dead: (id: string) => string
  readonly deadAll: string
  readonly attempts: (seq: number) => string
  readonly audit: (act: string, seq: number) => string
  readonly auditAll: string
  /** Small facts of the queue: `owner`, `clock`. */
  readonly fact: (name: string) => string
  /** All that the shelf's stream takes. */
  readonly shelfAll: readonly string[]
}

export function namesOf(
  queue: string,
  prefix: string,
  physical: Partial<PhysicalNames> = {},
): QueueNames {
  const own = token(queue)
  const under = (what: string): string => `${prefix}.${what}.${own}`
  const { subject = under('queue'), consumer = prefix } = physical
  return {
    queue,
    stream: physical.stream ?? `${prefix}-queue-${own}`,
    subject,
    consumer,
    lane: (lane, lanes) => `${subject}.lane.${lanes}.${lane}`,
    laneConsumer: (lane) => `${consumer}-lane-${lane}`,
    shelf: physical.shelf ?? `${prefix}-shelf-${own}`,
    later: (id) => `${under('later')}.${token(id)}`,
    laterAll: `${under('later')}.*`,
    dead: (id) => `${under('dead')}.${token(id)}`,
    deadAll: `${under('dead')}.*`,
    attempts: (seq) => `${under('attempts')}.${seq}`,
    audit: (act, seq) => `${under('audit')}.${act}-${seq}`,
    auditAll: `${under('audit')}.*`,
    fact: (name) => `${under('fact')}.${name}`,
    shelfAll: ['dead', 'attempts', 'audit', 'fact'].map((what) => `${under(what)}.*`),
  }
}

const encoder = new TextEncoder()

/**
 * A text as one part of a subject or of a stream's name, where dots, spaces, wildcards and slashes have a meaning: what is
 * not a letter, a digit, `-` or `_` becomes `=` and the two hex digits of each byte. No two texts become the same.
 */
export function token(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/gu, (character) =>
    [...encoder.encode(character)]
      .map((byte) => `=${byte.toString(16).padStart(2, '0').toUpperCase()}`)
      .join(''),
  )
}

/** The longest name of a stream (the server's JSMaxNameLen). */
export const NAME_MAX = 255
