import type { RememberedKey } from '../../model/envelope.ts'
import { heap, type Slotted } from './heap.ts'

/** A key and the message that holds it. */
export interface Memory extends Slotted {
  readonly name: string
  readonly id: string
  readonly fingerprint: string | undefined
  readonly endsAt: number
}

/** The senders' keys of one queue, each until its window ends. */
export interface RememberedKeys {
  find(name: string, now: number): Memory | undefined
  add(memory: Memory, now: number): void
}

export function rememberedKeys(): RememberedKeys {
  const byName = new Map<string, Memory>()
  const ending = heap<Memory>((a, b) => a.endsAt < b.endsAt)
  const forget = (now: number): void => {
    for (let next = ending.peek(); next && next.endsAt <= now; next = ending.peek()) {
      ending.pop()
      byName.delete(next.name)
    }
  }
  return {
    find(name, now) {
      forget(now)
      return byName.get(name)
    },
    add(memory, now) {
      forget(now)
      byName.set(memory.name, memory)
      ending.push(memory)
    },
  }
}

/** One name for kind and key; the kinds do not see each other. */
export function memoryName(key: RememberedKey): string {
  return `${key.kind}:${key.key}`
}

export function newMemory(key: RememberedKey, id: string, now: number): Memory {
  return {
    name: memoryName(key),
    id,
    fingerprint: key.fingerprint,
    endsAt: now + key.windowMs,
    slot: -1,
  }
}
