import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { SlotSettings } from './adapt-slots.ts'
import type { Meter } from './meter.ts'
import { type QueueSight, slotControl } from './slot-control.ts'

/** What the worker of one queue asks before it takes more, and tells of its runs. */
export interface QueueFlow {
  /** How many handlers may run side by side now. */
  slots(): number
  /** Right before a handler starts. */
  began(): void
  /** Once its outcome is decided. */
  ended(tookMs: number): void
  /** When the worker begins to receive; `onSlots` is told each change of their number. */
  start(onSlots: (slots: number) => void): void
  close(): Promise<void>
}

export interface QueueFlowOptions {
  readonly queue: string
  readonly concurrency: Concurrency
  readonly clock: Clock
  readonly logger: Logger
  readonly meter: Meter
  readonly gauge: () => Promise<QueueSight>
}

/** So many handlers side by side, or as many as the queue needs within bounds. */
export type Concurrency = number | SlotSettings

export function queueFlow({ concurrency, meter, ...options }: QueueFlowOptions): QueueFlow {
  const control =
    typeof concurrency === 'number'
      ? undefined
      : slotControl({ ...options, meter, settings: concurrency })
  return {
    slots: () => control?.slots() ?? Number(concurrency),
    began: meter.began,
    ended: meter.ended,
    start: (onSlots) => control?.start(onSlots),
    close: () => {
      control?.close()
      return meter.flush()
    },
  }
}

/** The most handlers that may ever run side by side. */
export function mostSlots(concurrency: Concurrency): number {
  return typeof concurrency === 'number' ? concurrency : concurrency.max
}
