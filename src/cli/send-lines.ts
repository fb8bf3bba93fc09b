import { systemClock } from '../model/clock.ts'
import { hasCode, isMillraceError, MillraceError } from '../model/errors.ts'
import { parseExactJson } from '../model/exact-json.ts'
import { read, readInteger, readList, readString } from '../model/probe.ts'
import type { App } from '../runtime/app.ts'
import type { AnyQueue } from '../runtime/queue.ts'
import type { SendResult } from '../runtime/send.ts'
import type { BatchSendOptions } from '../runtime/sender.ts'
import type { Call } from './command.ts'
import { DONE, type ExitCode, FAILED } from './exit-code.ts'
import { notTaken } from './json-text.ts'
import { reportFailure } from './report-failure.ts'
import { readLines } from './standard-input.ts'
import { UsageError } from './usage-error.ts'

/** Payloads in one statement: far below what any store takes, far above what one trip costs. */
const STEP = 500
/** Characters in memory: a step ends with the line that gets there. */
const STEP_CHARACTERS = 8_000_000

interface Line {
  readonly number: number
  readonly payload: unknown
}

/**
 * Sends the payloads on stdin in steps, each all or nothing. A bad line stops it; what was stored before is said, so
 * that the rest can be sent from there.
 */
export async function sendLines(
  call: Call,
  app: App,
  queue: AnyQueue,
  options: BatchSendOptions,
): Promise<ExitCode> {
  const tally = { stored: 0, duplicates: 0, lastLine: 0, underWay: 0 }
  const say = progress(call)
  const flush = async (step: readonly Line[]): Promise<void> => {
    if (step.length === 0) return
    const upTo = step.at(-1)?.number ?? tally.lastLine
    tally.underWay = upTo - tally.lastLine
    const results = await sendStep(app, queue, step, options)
    for (const result of results) {
      if (call.out.json) call.out.data(result)
      if (result.duplicate) tally.duplicates++
      else tally.stored++
    }
    tally.lastLine = upTo
    say(tally.stored)
  }
  try {
    let step: Line[] = []
    let characters = 0
    for await (const { number, text } of readLines(call.io)) {
      if (call.io.signal.aborted) return stopped(call, tally.lastLine)
      step.push({ number, payload: parseLine(number, text) })
      characters += text.length
      if (step.length < STEP && characters < STEP_CHARACTERS) continue
      await flush(step)
      step = []
      characters = 0
    }
    await flush(step)
  } catch (error) {
    const unsure = hasCode(error, 'MILLRACE_OUTCOME_UNKNOWN') ? tally.underWay : 0
    return reportFailure(error, call.out, storedText(tally.lastLine, unsure))
  }
  if (tally.lastLine === 0)
    throw new UsageError('no message on standard input: send --batch reads one from each line')
  if (!call.out.json) call.out.line(`stored ${tally.stored}${duplicatesText(tally.duplicates)}`)
  return DONE
}

function stopped(call: Call, lastLine: number): ExitCode {
  call.out.note(`millrace: stopped; ${storedText(lastLine, 0)}`)
  return FAILED
}

/**
 * Where to go on from.
 *
 * @param unsure so many lines behind them are stored, or not
 */
function storedText(lastLine: number, unsure: number): string {
  const before = lastLine === 0 ? 'nothing was stored' : `lines 1 to ${lastLine} are stored`
  if (unsure > 0) return `${before} for sure; of the next ${unsure} nobody knows`
  return lastLine === 0 ? before : `${before}, those after are not`
}

function duplicatesText(duplicates: number): string {
  return duplicates === 0 ? '' : `, ${duplicates} were known already`
}

async function sendStep(
  app: App,
  queue: AnyQueue,
  step: readonly Line[],
  options: BatchSendOptions,
): Promise<readonly SendResult[]> {
  try {
    return await app.sendBatch(
      queue,
      step.map(({ payload }) => payload),
      options,
    )
  } catch (error) {
    const line =
      step[readInteger(error, 'index') ?? readInteger(read(error, 'fields'), 'index') ?? -1]
    if (line === undefined || !isMillraceError(error)) throw error
    const { code, retryable } = error
    if (code !== 'MILLRACE_INVALID_PAYLOAD') {
      // Its own index counts within a step, of which nobody knows here.
      const message = `line ${line.number}: ${error.message}`
      throw new MillraceError(code, message, { cause: error, retryable })
    }
    const [first] = readList(error, 'issues', 1) ?? []
    const issue = [readString(first, 'path'), readString(first, 'message')].filter((part) => part)
    const message = `line ${line.number} does not fit the schema of queue "${queue.name}": ${issue.join(': ')}`
    throw new MillraceError('MILLRACE_INVALID_PAYLOAD', message, { cause: error })
  }
}

function parseLine(number: number, text: string): unknown {
  try {
    return parseExactJson(text)
  } catch (cause) {
    throw new UsageError(`line ${number}${notTaken(cause)}`, { cause })
  }
}

const PROGRESS_EVERY_MS = 1_000

function progress(call: Call): (stored: number) => void {
  const clock = systemClock()
  let saidAt = clock.now()
  return (stored) => {
    if (clock.now() - saidAt < PROGRESS_EVERY_MS) return
    saidAt = clock.now()
    call.out.note(`${stored} stored`)
  }
}
