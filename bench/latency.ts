import { BACKENDS, type Figures, nowMs, type Opened, type Question } from './contender.ts'
import { percentile } from './statistics.ts'
import { sendSteadily } from './steady.ts'

const PER_SECOND = 500

const FIGURES: Question['figures'] = [
  { name: 'p50Ms', unit: 'ms, p50', better: 'less' },
  { name: 'p99Ms', unit: 'ms, p99', better: 'less' },
]

/** Sender and worker in one process. */
export const question: Question = {
  id: 'latency',
  title: `Pick-up latency at ${PER_SECOND}/s`,
  how: `${PER_SECOND} messages a second to a worker in the same process; from the call of send to the start of the handler.`,
  figures: FIGURES,
  share: 0.015,
  limitMs: 30_000,
  backends: BACKENDS,
  async ask({ open, messages, limitMs }) {
    const opened = await open()
    return await measure(opened, messages, limitMs, (plan) => sendSteadily(opened, plan))
  },
}

/** The usual shape: a web process sends, a worker process works. */
export const questionAcross: Question = {
  ...question,
  id: 'latency-across',
  title: `Pick-up latency at ${PER_SECOND}/s, from another process`,
  how: `${PER_SECOND} messages a second from another process; from the call of send there to the start of the handler here.`,
  backends: BACKENDS.filter((backend) => backend !== 'memory'),
  async ask({ open, messages, limitMs, sendElsewhere }) {
    return await measure(await open(), messages, limitMs, sendElsewhere)
  },
}

type Sending = (plan: { messages: number; perSecond: number }) => Promise<void>

async function measure(
  opened: Opened,
  messages: number,
  limitMs: number,
  sending: Sending,
): Promise<Figures> {
  const latencies: number[] = []
  const all = Promise.withResolvers<void>()
  const limit = setTimeout(
    () =>
      all.reject(new Error(`${latencies.length} of ${messages} messages were picked up in time`)),
    limitMs,
  )
  await opened.work((parcel) => {
    latencies.push(nowMs() - parcel.at)
    if (latencies.length === messages) all.resolve()
  })
  await Promise.all([sending({ messages, perSecond: PER_SECOND }), all.promise])
  clearTimeout(limit)
  await opened.close()
  return { p50Ms: percentile(latencies, 50), p99Ms: percentile(latencies, 99) }
}
