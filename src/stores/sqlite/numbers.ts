import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { Buckets } from '../../store/buckets.ts'
import type { Counters } from '../../store/counters.ts'
import { type BucketLevel, takeTokens } from '../bucket-level.ts'
import { exactly } from '../exactly.ts'
import type { Database } from './database.ts'
import { FIND_BUCKET, FIND_COUNTER, SET_BUCKET, SET_COUNTER } from './statements.ts'

export function sqliteBuckets({ handle, now, write }: Database): Buckets {
  const find = (name: string): BucketLevel | undefined => {
    const found = prepared(handle, FIND_BUCKET).get(name)
    if (found === undefined) return undefined
    const { tokens, at, expires_at } = asRow(found)
    return { tokens: asNumber(tokens), at: asNumber(at), fullAt: asNumber(expires_at) }
  }
  return {
    take: (name, rate, tokens) =>
      write(() => {
        const { answer, level } = takeTokens(find(name), rate, tokens, now())
        if (level !== undefined) {
          prepared(handle, SET_BUCKET).run(name, level.tokens, level.at, level.fullAt)
        }
        return answer
      }),
  }
}

export function sqliteCounters({ handle, now, read, write }: Database): Counters {
  return {
    add: (name, delta, keepMs) =>
      write(() => {
        const at = now()
        const row = asRow(prepared(handle, FIND_COUNTER).get(name, at))
        const sum = exactly(asNumber(row.value) + delta)
        prepared(handle, SET_COUNTER).run(name, sum, row.expires_at ?? at + keepMs)
        return sum
      }),
    read: (name) =>
      read(() => asNumber(asRow(prepared(handle, FIND_COUNTER).get(name, now())).value)),
  }
}
