import type { Family } from '../promise.ts'
import { absences } from './absences.ts'
import { ack } from './ack.ts'
import { batch } from './batch.ts'
import { browse } from './browse.ts'
import { capacity } from './capacity.ts'
import { close } from './close.ts'
import { crash } from './crash.ts'
import { deadLetter } from './dead-letter.ts'
import { dedupe } from './dedupe.ts'
import { delay } from './delay.ts'
import { diagnose } from './diagnose.ts'
import { fairness } from './fairness.ts'
import { haltedKeys } from './halted-keys.ts'
import { lease } from './lease.ts'
import { limits } from './limits.ts'
import { order } from './order.ts'
import { receive } from './receive.ts'
import { redrive } from './redrive.ts'
import { release } from './release.ts'
import { send } from './send.ts'
import { shedding } from './shedding.ts'
import { traits } from './traits.ts'
import { transaction } from './transaction.ts'
import { workloads } from './workloads.ts'

/** All promises, in the order of docs/guarantees.md. */
export const families: readonly Family[] = [
  send,
  receive,
  ack,
  release,
  lease,
  order,
  haltedKeys,
  fairness,
  crash,
  deadLetter,
  redrive,
  delay,
  dedupe,
  batch,
  limits,
  capacity,
  shedding,
  transaction,
  browse,
  close,
  diagnose,
  traits,
  absences,
  workloads,
]
