import { retrySchedule } from '../model/retry.ts'
import type { AnyQueue } from './queue.ts'

/** A request to anything on a network may take longer than this. */
const SHORT_TIMEOUT_MS = 100
/** No outage is over so soon. */
const SHORT_BASE_MS = 20

/**
 * What is allowed and rarely meant, mostly seconds where ms are asked for; one sentence each. They are no refusals, since tests want handlers
 * and retries that take no time.
 */
export function likelySlips(queue: AnyQueue): readonly string[] {
  return [timeoutSlip(queue), retrySlip(queue)].flat()
}

function timeoutSlip({ name, handlerTimeoutMs }: AnyQueue): readonly string[] {
  if (handlerTimeoutMs >= SHORT_TIMEOUT_MS) return []
  return [
    `queue "${name}": handlerTimeoutMs is ${handlerTimeoutMs} ms, and each run that takes longer fails; ${inSeconds('handlerTimeoutMs', handlerTimeoutMs)}`,
  ]
}

function retrySlip({ name, retry }: AnyQueue): readonly string[] {
  const { attempts, baseMs, maxMs } = retry
  const allMs = retrySchedule(retry).at(-1)?.totalMaxMs
  if (allMs === undefined || baseMs >= SHORT_BASE_MS) return []
  // Where only maxMs was given, baseMs is no more than that.
  const option = baseMs === maxMs ? 'maxMs' : 'baseMs'
  return [
    `queue "${name}": retry.${option} is ${baseMs} ms: all ${attempts} attempts are over within ${allMs} ms of waiting, so whatever is away for longer makes messages dead; ${inSeconds(`retry.${option}`, baseMs)}`,
  ]
}

function inSeconds(option: string, value: number): string {
  return `where seconds were meant write ${option}: ${value * 1_000}`
}
