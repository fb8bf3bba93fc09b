import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import { adaptSlots, firstSlots, LOOK_EVERY_MS, type SlotSettings } from './adapt-slots.ts'
import type { Meter } from './meter.ts'

/** How many handlers of one queue may run side by side in this process. */
export interface SlotControl {
  slots(): number
  /** Looks at the queue every five seconds from now on; `onChange` is told each time that the number is another one. */
  start(onChange: (slots: number) => void): void
  close(): void
}

export interface SlotControlOptions {
  readonly queue: string
  readonly settings: SlotSettings
  readonly clock: Clock
  readonly logger: Logger
  readonly meter: Meter
  readonly gauge: () => Promise<QueueSight>
}

export interface QueueSight {
  readonly ageMs: number | undefined
  readonly depth: number | undefined
}

export function slotControl(options: SlotControlOptions): SlotControl {
  const { queue, settings, clock, logger, meter } = options
  let state = firstSlots(settings)
  let told: (slots: number) => void = () => undefined
  let cancel: (() => void) | undefined
  let last = { at: clock.now(), busyMs: 0, runs: 0 }
  let closed = false

  const note = (sight: QueueSight): void => {
    const now = { at: clock.now(), busyMs: meter.busyMs(), runs: meter.runs() }
    const forMs = now.at - last.at
    if (forMs <= 0) return
    const before = state.slots
    const look = {
      ...sight,
      busy: (now.busyMs - last.busyMs) / forMs,
      runs: now.runs - last.runs,
      handlerMs: meter.own()?.handlerMs,
      forMs,
    }
    state = adaptSlots(state, look, settings)
    last = now
    if (state.slots === before) return
    logger.debug(`queue "${queue}": ${before} handlers side by side become ${state.slots}`, {
      queue,
      slots: state.slots,
      ageMs: sight.ageMs,
    })
    told(state.slots)
  }

  const look = async (): Promise<void> => {
    try {
      const sight = await options.gauge()
      if (!closed) note(sight)
    } catch (error) {
      logger.debug(`queue "${queue}": its depth is not known (${messageOfError(error)})`, { queue })
    }
    arm()
  }

  const arm = (): void => {
    if (!closed) cancel = clock.after(LOOK_EVERY_MS, () => void look())
  }

  return {
    slots: () => state.slots,
    start: (onChange) => {
      told = onChange
      last = { at: clock.now(), busyMs: meter.busyMs(), runs: meter.runs() }
      arm()
    },
    close: () => {
      closed = true
      cancel?.()
    },
  }
}
