import { setTimeout as sleep } from 'node:timers/promises'
import {
  type FigureSpec,
  type Figures,
  type Opened,
  type Parcel,
  parcel,
  type Question,
  startMeter,
} from './contender.ts'
import { CHUNK } from './enqueue-bulk.ts'

/** What is drained: messages of so many keys in turn, perhaps with as many of one more, the hot one, among them. */
interface Case {
  readonly name: string
  readonly unit: string
  /** Absent: the queue keeps no order. */
  readonly keys?: number
  readonly hot?: boolean
}

const CASES: readonly Case[] = [
  { name: 'unordered', unit: 'messages/s without order' },
  { name: 'keys10000', unit: '10,000 keys', keys: 10_000 },
  { name: 'keys100', unit: '100 keys', keys: 100 },
  { name: 'besideHot', unit: '100 keys beside a hot one', keys: 100, hot: true },
  { name: 'keys1', unit: '1 key', keys: 1 },
]

export const question: Question = {
  id: 'order',
  title: 'Drain in order',
  how: 'As Drain, on a queue in order by key; the keys take turns. Beside a hot key: of every two messages one is of that key, and only the others count.',
  figures: CASES.map(({ name, unit }): FigureSpec => ({ name, unit, better: 'more' })),
  share: 0.1,
  limitMs: 25_000,
  backends: ['memory', 'sqlite', 'postgres', 'redis'],
  oursOnly: true,
  async ask({ open, messages, limitMs }) {
    const figures: Record<string, number> = {}
    const place = await open()
    for (const one of CASES) {
      if (!place.inOrder) throw new Error('this contender keeps no order')
      const opened = one.keys === undefined ? place : await place.inOrder(`order-${one.name}`)
      figures[one.name] = await rateOf(opened, one, messages, limitMs / CASES.length)
      if (opened !== place) await opened.close()
    }
    await place.close()
    return figures satisfies Figures
  },
}

async function rateOf(
  opened: Opened,
  { keys = 1, hot = false }: Case,
  messages: number,
  limitMs: number,
): Promise<number> {
  const all = Array.from({ length: messages }, (_, n): readonly Parcel[] => {
    const own = { ...parcel(n), key: `key-${n % keys}` }
    return hot ? [own, { ...parcel(n), key: 'hot' }] : [own]
  }).flat()
  for (let at = 0; at < all.length; at += CHUNK) await opened.sendMany(all.slice(at, at + CHUNK))
  return await drainRate(opened, messages, limitMs, ({ key }) => key !== 'hot')
}

/** Messages a second, of those that count. */
export async function drainRate(
  opened: Opened,
  messages: number,
  limitMs: number,
  counts: (parcel: Parcel) => boolean,
): Promise<number> {
  let handled = 0
  const { perMessage, elapsedMs } = startMeter()
  await opened.work((parcel) => {
    if (counts(parcel)) handled += 1
  })
  while (handled < messages && elapsedMs() < limitMs) await sleep(1)
  if (handled === 0) throw new Error(`nothing of ${messages} messages was handled in ${limitMs} ms`)
  return perMessage(handled).perSecond
}
