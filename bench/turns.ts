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
import { drainRate } from './order.ts'

/** Whose messages are drained, and how urgent they are. */
interface Case {
  readonly name: string
  readonly unit: string
  /** In turn, a call of many each. */
  readonly priorities?: number
  /** Absent: the queue is not fair. */
  readonly tenants?: number
}

const CASES: readonly Case[] = [
  { name: 'plain', unit: 'as they come' },
  { name: 'priorities', unit: '3 priorities', priorities: 3 },
  { name: 'tenants', unit: '100 tenants', tenants: 100 },
  { name: 'both', unit: '100 tenants, 3 priorities', tenants: 100, priorities: 3 },
]

export const question: Question = {
  id: 'turns',
  title: 'Priorities and fairness',
  how: 'As Enqueue, many in a call, and Drain, with messages of priorities that take turns, on a queue that is fair by tenant, and both.',
  figures: CASES.flatMap(({ name, unit }): readonly FigureSpec[] => [
    { name: `${name}Drained`, unit: `drained/s, ${unit}`, better: 'more' },
    { name: `${name}Sent`, unit: 'sent/s', better: 'more' },
  ]),
  share: 0.2,
  limitMs: 40_000,
  backends: ['memory', 'sqlite', 'postgres', 'redis'],
  oursOnly: true,
  async ask({ open, messages, limitMs }) {
    const figures: Record<string, number> = {}
    for (const one of CASES) {
      const place = await open()
      if (!place.fairly) throw new Error('this contender is not fair')
      const opened = one.tenants === undefined ? place : await place.fairly(`turns-${one.name}`)
      figures[`${one.name}Sent`] = await fill(opened, one, messages)
      const part = limitMs / CASES.length
      figures[`${one.name}Drained`] = await drainRate(opened, messages, part, () => true)
      if (opened !== place) await opened.close()
      await place.close()
    }
    return figures satisfies Figures
  },
}

/** Messages sent a second. */
async function fill(
  opened: Opened,
  { priorities = 1, tenants = 1 }: Case,
  messages: number,
): Promise<number> {
  const all = Array.from(
    { length: messages },
    (_, n): Parcel => ({ ...parcel(n), key: `tenant-${n % tenants}` }),
  )
  const { perMessage } = startMeter()
  for (let at = 0; at < all.length; at += CHUNK) {
    await opened.sendMany(all.slice(at, at + CHUNK), (at / CHUNK) % priorities)
  }
  return perMessage(messages).perSecond
}
