import type { Cancel } from '../../model/clock.ts'
import type { Held } from './held.ts'
import { giveBack } from './leases.ts'
import { type Holding, renewHeld } from './settle.ts'

/** Keeps the leases of what waits in memory, and gives it back when nobody asks for it any more. */
export interface Tray {
  put(all: readonly Held[]): void
  /** Somebody receives; the result says that he has stopped. */
  asked(): () => void
  /** How many receive right now. */
  readonly askers: number
  close(): void
}

export function openTray(holding: Holding, leaseMs: number): Tray {
  const { store, hand, url } = holding
  const { clock } = store
  let askers = 0
  let askedAt = clock.now()
  let cancel: Cancel | undefined
  let closed = false

  const tend = async (): Promise<void> => {
    if (askers === 0 && clock.now() - askedAt > leaseMs) {
      await giveBack(store, url, hand.takeTray())
    } else {
      await renewHeld(holding, hand.tray, leaseMs)
    }
  }
  const arm = (): void => {
    if (cancel !== undefined || closed || hand.tray.length === 0) return
    cancel = clock.after(leaseMs / 3, () => {
      // Never rejects: what fails is answered by item, and logged.
      void tend().then(() => {
        cancel = undefined
        arm()
      })
    })
  }

  return {
    put(all) {
      hand.put(all)
      arm()
    },
    asked() {
      askers += 1
      askedAt = clock.now()
      return () => {
        askers -= 1
        askedAt = clock.now()
      }
    },
    get askers() {
      return askers
    },
    close() {
      closed = true
      cancel?.()
    },
  }
}
