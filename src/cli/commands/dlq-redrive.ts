import type { RedriveResult, RedriveSelection } from '../../admin/admin.ts'
import { systemClock } from '../../model/clock.ts'
import { errorClasses } from '../../model/history.ts'
import type { AnyQueue } from '../../runtime/queue.ts'
import { actorOf } from '../actor.ts'
import type { Call, Command } from '../command.ts'
import { DONE, type ExitCode, FAILED } from '../exit-code.ts'
import { interruptions } from '../interruptions.ts'
import { UsageError } from '../usage-error.ts'
import { queueNamed, withApp } from '../with-app.ts'
import { errorClassOf } from './dlq-ls.ts'

export const dlqRedrive: Command = {
  name: 'dlq redrive',
  summary: 'send dead letters back to their queue',
  operands: '<queue> <id…> | --all | --class <class>',
  minOperands: 1,
  maxOperands: 10_001,
  options: {
    all: { help: 'all dead letters of the queue' },
    class: { value: '<class>', help: `those of one error class: ${errorClasses.join(', ')}` },
    'dry-run': { help: 'only say how many' },
    rate: { value: '<n>', help: 'at most n a second; default as fast as the store allows' },
    force: { help: 'also those older than the inbox remembers: their effect may happen twice' },
    reason: { value: '<text>', help: 'for the audit log' },
  },
  notes: [
    'Id and keys stay, attempts start at 1 again, the old ones stay on record.',
    'Stopped half way, nothing is lost or doubled: run it again for the rest.',
    "On a queue with onDead: 'continue' it comes out of order, after what was sent of its key meanwhile.",
  ],
  run: (call) => {
    const what = selection(call)
    const rate = rateOf(call.value('rate'))
    const reason = call.value('reason')
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      const stops = interruptions(call.io)
      try {
        const result = await open.app.admin.deadLetters.redrive(queue, {
          ...what,
          dryRun: call.is('dry-run'),
          force: call.is('force'),
          actor: actorOf(call.io),
          ...(rate === undefined ? {} : { ratePerSecond: rate }),
          ...(reason === undefined ? {} : { reason }),
          signal: stops.first,
          onProgress: progress(call),
          onFull: saidOnce(call, queue),
        })
        return report(call, queue, result, stops.first.aborted)
      } finally {
        stops.end()
      }
    })
  },
}

function selection(
  call: Call,
): Pick<RedriveSelection & { ids: readonly string[] }, 'ids'> | { filter: object } {
  const ids = call.operands.slice(1)
  const errorClass = errorClassOf(call.value('class'))
  const all = call.is('all')
  if (ids.length > 0 && (all || errorClass !== undefined)) {
    throw new UsageError(
      'dlq redrive takes ids, or --all, or --class; not ids and one of the others',
    )
  }
  if (ids.length > 0) return { ids }
  if (errorClass !== undefined) return { filter: { errorClass } }
  if (all) return { filter: {} }
  throw new UsageError('dlq redrive needs ids, --all or --class <class>')
}

function rateOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const rate = Number(text)
  if (/^\d{1,7}(?:\.\d{1,6})?$/.test(text) && rate > 0) return rate
  throw new UsageError(
    `--rate: expected a number above 0 (messages a second), got ${JSON.stringify(text)}`,
  )
}

const PROGRESS_EVERY_MS = 1_000

/** A line a second at most, so that a short redrive says nothing in between. */
function progress(call: Call): (soFar: RedriveResult) => void {
  const clock = systemClock()
  let saidAt = clock.now()
  return ({ moved, matched }) => {
    const now = clock.now()
    if (now - saidAt < PROGRESS_EVERY_MS) return
    saidAt = now
    call.out.note(`${moved} of ${matched} moved`)
  }
}

/** Else nobody knows why it stands still. */
function saidOnce(call: Call, { name, order }: AnyQueue): () => void {
  const behind =
    order?.onDead === 'halt-key'
      ? `; what waits behind halted keys counts: millrace keys ls ${name}`
      : ''
  let said = false
  return () => {
    if (!said) call.out.note(`millrace: queue ${name} is full, the redrive waits for room${behind}`)
    said = true
  }
}

function report(
  call: Call,
  { name, order }: AnyQueue,
  result: RedriveResult,
  interrupted: boolean,
): ExitCode {
  const { matched, moved, notFound } = result
  const { out } = call
  if (out.json) out.data(result)
  else if (call.is('dry-run')) out.line(`${matched} would be moved`)
  else out.line(`moved ${moved} of ${matched}`)
  if (order?.onDead === 'continue' && matched > 0) {
    out.note(
      `millrace: out of order: queue ${name} has onDead: 'continue', so what is redriven comes after what was sent of its key meanwhile`,
    )
  }
  if (notFound.length > 0) out.note(`millrace: not among the dead letters: ${notFound.join(', ')}`)
  const stopped = interrupted && moved < matched
  if (stopped) out.note(`millrace: stopped; run it again for the other ${matched - moved}`)
  return notFound.length > 0 || stopped ? FAILED : DONE
}
