import { setTimeout as sleep } from 'node:timers/promises'
import { nowMs, type Opened, parcel, type SendingPlan } from './contender.ts'

/** Sends at a steady rate, whatever the answers take; resolves when all were confirmed. */
export async function sendSteadily(opened: Opened, plan: SendingPlan): Promise<void> {
  const from = nowMs()
  const answers: Promise<void>[] = []
  for (let n = 0; n < plan.messages; n += 1) {
    const dueMs = (n / plan.perSecond) * 1_000 - (nowMs() - from)
    if (dueMs > 0) await sleep(dueMs)
    answers.push(opened.send(parcel(n)))
  }
  await Promise.all(answers)
}
