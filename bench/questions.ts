import type { Question } from './contender.ts'
import { question as drain } from './drain.ts'
import { question as drainEffect } from './drain-effect.ts'
import { question as enqueueBulk } from './enqueue-bulk.ts'
import { question as enqueueCallers } from './enqueue-callers.ts'
import { question as enqueueOne } from './enqueue-one.ts'
import { question as idle } from './idle.ts'
import { question as latency, questionAcross as latencyAcross } from './latency.ts'
import { question as order } from './order.ts'
import { question as turns } from './turns.ts'

export const QUESTIONS: readonly Question[] = [
  enqueueOne,
  enqueueCallers,
  enqueueBulk,
  drain,
  drainEffect,
  order,
  turns,
  latency,
  latencyAcross,
  idle,
]
