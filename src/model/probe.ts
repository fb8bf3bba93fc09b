/** Reads a property of anything; a throwing getter, a revoked proxy and null all read as undefined. */
export function read(value: unknown, key: string): unknown {
  if (!isObject(value)) return undefined
  try {
    return (value as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

/** Something with properties: functions have them too. */
export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

export function readString(value: unknown, key: string): string | undefined {
  const found = read(value, key)
  return typeof found === 'string' ? found : undefined
}

export function readInteger(value: unknown, key: string): number | undefined {
  const found = read(value, key)
  return typeof found === 'number' && Number.isSafeInteger(found) ? found : undefined
}

/** A copy of the first `max` items; undefined when it is no list or cannot be read. */
export function readList(value: unknown, key: string, max: number): readonly unknown[] | undefined {
  try {
    const found = read(value, key)
    return Array.isArray(found)
      ? Array.from({ length: Math.min(max, found.length) }, (_, i) => found[i])
      : undefined
  } catch {
    return undefined
  }
}

const SAFE_CODE = /^[A-Za-z0-9_.:-]{1,64}$/

/** A code fit to be stored and shown, or undefined. */
export function safeCode(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && SAFE_CODE.test(value) ? value : undefined
}
