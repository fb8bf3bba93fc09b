import type { ScaleOptions, ScaleView } from '../../admin/admin.ts'
import { mostSlots } from '../../flow/queue-flow.ts'
import { problems } from '../../model/problems.ts'
import { resolveConcurrency } from '../../runtime/concurrency.ts'
import type { Call, Command } from '../command.ts'
import { parseDuration } from '../duration.ts'
import { DONE } from '../exit-code.ts'
import { UsageError } from '../usage-error.ts'
import { wholeNumber } from '../whole-number.ts'
import { type OpenApp, queueNamed, withApp } from '../with-app.ts'

const WORKERS = { min: 0, max: 10_000 }
const WATCH_MS = 5_000

export const scale: Command = {
  name: 'scale',
  summary: 'say how many workers are needed, of one queue or all, and why',
  operands: '[queue]',
  minOperands: 0,
  maxOperands: 1,
  options: {
    recommend: { help: 'the number of workers and the sum behind it (the default)' },
    within: { value: '<time>', help: 'what waits now must be gone within; default 1m' },
    concurrency: { value: '<n>', help: 'handlers side by side in a worker; default the config’s' },
    min: { value: '<n>', help: 'workers at least; default 0' },
    max: { value: '<n>', help: 'workers at most; default 10000' },
    'handler-time': { value: '<time>', help: 'how long a handler takes; default as measured' },
    arrivals: { value: '<n>', help: 'messages that arrive per second; default as measured' },
    watch: { value: '<time>', help: 'look twice, so far apart; default 5s' },
  },
  notes: [
    'Workers measure their handlers and tell the store; without one this command must be told with --handler-time.',
    '"?" means that too little is known; the lines below it say what is missing.',
  ],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [wanted] = call.operands
      const queues = wanted === undefined ? open.config.queues : [queueNamed(open, wanted)]
      const found = await Promise.all(
        queues.map(({ name }) => open.app.admin.scale(name, optionsOf(call, open, name))),
      )
      if (call.out.json) call.out.data(wanted === undefined ? found : found[0])
      else for (const line of found.flatMap(linesOf)) call.out.line(line)
      return DONE
    }),
}

function optionsOf(call: Call, open: OpenApp, queue: string): ScaleOptions {
  const duration = (option: string): number | undefined => {
    const text = call.value(option)
    return text === undefined ? undefined : parseDuration(`--${option}`, text)
  }
  const given = {
    clearWithinMs: duration('within'),
    concurrency:
      wholeNumber('--concurrency', call.value('concurrency'), { min: 1, max: 10_000 }) ??
      configured(open, queue),
    min: wholeNumber('--min', call.value('min'), WORKERS),
    max: wholeNumber('--max', call.value('max'), WORKERS),
    handlerMs: duration('handler-time'),
    arrivalsPerSecond: rate(call.value('arrivals')),
    watchMs: duration('watch') ?? WATCH_MS,
    signal: call.io.signal,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** The workers run elsewhere, by this same file. */
function configured({ config }: OpenApp, queue: string): number | undefined {
  const worker = config.workers?.find((one) => one.queue.name === queue)
  if (worker?.concurrency === undefined) return undefined
  return mostSlots(resolveConcurrency('concurrency', worker.concurrency, problems('worker')))
}

function rate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}(\.\d{1,6})?$/.test(text)) return Number(text)
  throw new UsageError(
    `--arrivals: expected messages per second such as 12.5, got ${JSON.stringify(text)}`,
  )
}

function linesOf({ queue, workers, why }: ScaleView): readonly string[] {
  const number =
    workers === undefined ? '? workers' : `${workers} worker${workers === 1 ? '' : 's'}`
  return [`${queue}: ${number}`, ...why.map((line) => `  ${line}`)]
}
