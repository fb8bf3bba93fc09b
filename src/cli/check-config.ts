import { resolveIntakeOptions } from '../http/intake-options.ts'
import { OptionsError } from '../model/errors.ts'
import { read, readString } from '../model/probe.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import { CONFIG_KEYS, type MillraceConfig } from '../runtime/config.ts'
import type { IntakeOptions } from '../runtime/intake-options.ts'
import type { AnyQueue } from '../runtime/queue.ts'
import { resolveWork, WORK_KEYS } from '../runtime/work-options.ts'

const WORKER_KEYS: readonly string[] = ['queue', 'handler', ...WORK_KEYS]

/**
 * What `millrace start` would find out only when the database is open, is found before. The app's own options are
 * checked by createMillrace.
 * @throws MILLRACE_INVALID_OPTIONS with every problem at once.
 */
export function checkConfig(value: unknown, name: string): MillraceConfig {
  const found = problems(`config file ${name}: its default export is not what defineConfig takes`)
  if (typeof value !== 'object' || value === null) {
    found.add(`expected an object, got ${show(value)}`)
    found.throwIfAny()
  }
  found.knownKeys(value, CONFIG_KEYS)
  if (typeof read(read(value, 'transport'), 'connect') !== 'function') {
    found.add(
      'transport: expected what sqlite(…), postgres(…), redis(…) or another transport gives',
    )
  }
  const queues = read(value, 'queues')
  const areQueues = Array.isArray(queues) && queues.length > 0 && queues.every(isNamed)
  if (!areQueues) found.add('queues: expected a list of what defineQueue gives')
  checkWorkers(read(value, 'workers'), areQueues ? queues : [], found)
  const intake = read(value, 'intake')
  if (intake !== undefined && areQueues) checkIntake(intake, queues, found)
  found.throwIfAny()
  // Checked right above; the rest is checked by createMillrace.
  return value as MillraceConfig
}

function isNamed(queue: unknown): queue is AnyQueue {
  return readString(queue, 'name') !== undefined && read(queue, 'schema') !== undefined
}

function checkWorkers(workers: unknown, queues: readonly AnyQueue[], found: Problems): void {
  if (workers === undefined) return
  if (!Array.isArray(workers)) {
    found.add(`workers: expected a list of { queue, handler } (defineWorker), got ${show(workers)}`)
    return
  }
  const names: (string | undefined)[] = []
  for (const [i, worker] of workers.entries()) {
    const at = `workers[${i}]`
    const queue = read(worker, 'queue')
    if (!isNamed(queue) || typeof read(worker, 'handler') !== 'function') {
      found.add(`${at}: expected { queue, handler } (defineWorker), got ${show(worker)}`)
      continue
    }
    found.knownKeys(worker, WORKER_KEYS, at)
    resolveWork(worker, found, `${at}.`)
    if (queues.length > 0 && !queues.some((one) => one.name === queue.name))
      found.add(`${at}: queue "${queue.name}" is not among queues; add it there`)
    if (names.includes(queue.name))
      found.add(
        `${at}: queue "${queue.name}" has a worker already; one handler belongs to one queue`,
      )
    names.push(queue.name)
  }
}

/** The intake knows what it takes. */
function checkIntake(intake: unknown, queues: readonly AnyQueue[], found: Problems): void {
  try {
    resolveIntakeOptions({ queues }, intake as IntakeOptions)
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error
    for (const problem of error.problems) found.add(`intake: ${problem}`)
  }
}
