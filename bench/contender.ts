/** What every message of a bench carries: about 200 bytes of JSON. */
export interface Parcel {
  readonly n: number
  /** When `send` was called, in ms of the machine's monotonic clock (comparable between processes). */
  readonly at: number
  readonly note: string
  /** On a queue in order: what stays in order. On a fair one: whose it is. */
  readonly key?: string | undefined
}

/** Where a contender keeps its messages: empty, and its own, in every run. */
export interface Place {
  /** SQLite file. */
  readonly file: string
  /** Postgres database, server or `host:port` of the broker; empty where the contender needs none. */
  readonly url: string
}

/** A queue that is open. All contenders do the same things behind this, through their public APIs. */
export interface Opened {
  /** One message; resolves when it is as durable as the contender makes it. */
  send(parcel: Parcel): Promise<void>
  /** @param priority 0 unless given; only where the contender has priorities */
  sendMany(parcels: readonly Parcel[], priority?: number): Promise<void>
  /** Starts a worker whose handler calls `run`. */
  work(run: (parcel: Parcel) => void): Promise<void>
  /** Starts a worker whose handler inserts one row, once per message whatever happens; `run` is called after that. */
  workWithEffect?(run: (parcel: Parcel) => void): Promise<void>
  /** A queue of this name at the same place, in order by the `key` of each parcel. It ends with this one. */
  inOrder?(name: string): Promise<Opened>
  /** The same, fair by the `key` of each parcel. */
  fairly?(name: string): Promise<Opened>
  /** Messages that are not done: ready, scheduled or in flight. */
  remaining(): Promise<number>
  /** Rows that `workWithEffect` inserted. */
  effects?(): Promise<number>
  close(): Promise<void>
}

export interface ContenderModule {
  open(place: Place, variant: string): Promise<Opened>
}

export const BROKERS = ['redis', 'nats', 'rabbitmq', 'kafka', 'sqs'] as const
export const BACKENDS = ['memory', 'sqlite', 'postgres', ...BROKERS] as const
export type Backend = (typeof BACKENDS)[number]

/** A queue, with the settings it runs with. */
export interface Contender {
  readonly id: string
  readonly label: string
  readonly backend: Backend
  readonly ours: boolean
  /** The client of the broker alone: what our figures are measured against first. */
  readonly raw?: boolean
  /** When Redis writes to its disk. */
  readonly fsync?: 'everysec'
  /** Relative to this folder. */
  readonly module: string
  /** Handed to the module. */
  readonly variant: string
  /** What survives what; printed beside each figure. */
  readonly durability: string
  readonly settings: string
  /** Questions that this one is asked; absent: all. */
  readonly only?: readonly string[]
}

/** Figures by name, for example `{ perSecond: 12_000 }`. */
export type Figures = Readonly<Record<string, number>>

export interface Round {
  readonly open: () => Promise<Opened>
  /** How many messages, at most. */
  readonly messages: number
  /** How long, at most, in ms. */
  readonly limitMs: number
  /** Sends at this rate from another process; resolves when it has sent them all. */
  readonly sendElsewhere: (plan: SendingPlan) => Promise<void>
}

export interface SendingPlan {
  readonly messages: number
  readonly perSecond: number
}

export interface Question {
  readonly id: string
  readonly title: string
  /** How it is asked, in a sentence or two. */
  readonly how: string
  /** The figure that is compared first, and which way is better. */
  readonly figures: readonly FigureSpec[]
  /** Of the `--messages` of the whole bench, which part this question takes. */
  readonly share: number
  readonly limitMs: number
  readonly backends: readonly Backend[]
  /** What the others do not do alike. */
  readonly oursOnly?: true
  ask(round: Round): Promise<Figures>
}

export interface FigureSpec {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
}

const NOTE = 'a note that makes the message as long as most are '.repeat(3)

export function parcel(n: number): Parcel {
  return { n, at: nowMs(), note: NOTE }
}

export function parcels(count: number, from = 0): readonly Parcel[] {
  return Array.from({ length: count }, (_, i) => parcel(from + i))
}

/** The monotonic clock of the machine; the same in every process. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Time and CPU time of this process since a moment, per message: the second hardly minds a busy machine. */
export interface Meter {
  perMessage(messages: number): { readonly perSecond: number; readonly cpuUs: number }
  elapsedMs(): number
}

export function startMeter(): Meter {
  const from = nowMs()
  const before = process.cpuUsage()
  const elapsedMs = (): number => nowMs() - from
  return {
    elapsedMs,
    perMessage(messages) {
      const { user, system } = process.cpuUsage(before)
      return { perSecond: (messages / elapsedMs()) * 1_000, cpuUs: (user + system) / messages }
    },
  }
}

export const RATE_FIGURES: readonly FigureSpec[] = [
  { name: 'perSecond', unit: 'messages/s', better: 'more' },
  { name: 'cpuUs', unit: 'CPU µs each', better: 'less' },
]
