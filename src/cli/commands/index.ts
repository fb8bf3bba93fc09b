import type { Command } from '../command.ts'
import { breaker } from './breaker.ts'
import { breakers } from './breakers.ts'
import { cancel } from './cancel.ts'
import { dlqAudit } from './dlq-audit.ts'
import { dlqDiscard } from './dlq-discard.ts'
import { dlqLs } from './dlq-ls.ts'
import { dlqRedrive } from './dlq-redrive.ts'
import { dlqShow } from './dlq-show.ts'
import { doctor } from './doctor.ts'
import { explainError } from './explain-error.ts'
import { init } from './init.ts'
import { keysLs } from './keys-ls.ts'
import { keysResume } from './keys-resume.ts'
import { keysShow } from './keys-show.ts'
import { keysSkip } from './keys-skip.ts'
import { message } from './message.ts'
import { migrate } from './migrate.ts'
import { outboxAudit } from './outbox-audit.ts'
import { outboxDiscard } from './outbox-discard.ts'
import { outboxLs } from './outbox-ls.ts'
import { outboxRetry } from './outbox-retry.ts'
import { pause } from './pause.ts'
import { purge } from './purge.ts'
import { resume } from './resume.ts'
import { scale } from './scale.ts'
import { send } from './send.ts'
import { slots } from './slots.ts'
import { start } from './start.ts'
import { stats } from './stats.ts'

/** In the order in which a newcomer needs them. */
export const commands: readonly Command[] = [
  init,
  start,
  send,
  stats,
  scale,
  doctor,
  dlqLs,
  dlqShow,
  dlqRedrive,
  dlqDiscard,
  dlqAudit,
  keysLs,
  keysShow,
  keysResume,
  keysSkip,
  outboxLs,
  outboxRetry,
  outboxDiscard,
  outboxAudit,
  pause,
  resume,
  breakers,
  breaker,
  slots,
  message,
  cancel,
  purge,
  migrate,
  explainError,
]
