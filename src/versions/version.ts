import { PermanentError } from '../model/errors.ts'
import { show } from '../model/problems.ts'

/** What the stores keep: 64 bits with a sign, in SQLite and in Postgres. */
const VERSION_MAX = 2n ** 63n - 1n

/**
 * The version that a payload has, as the stores compare it: a bigint, or an integer that a number holds exactly (a counter, a time
 * in epoch ms).
 * @throws PermanentError for anything else: another attempt would read the same
 */
export function versionOf(given: unknown, queue: string): bigint {
  if (typeof given === 'number' && Number.isSafeInteger(given)) return BigInt(given)
  if (typeof given === 'bigint' && given <= VERSION_MAX && given >= -VERSION_MAX) return given
  throw new PermanentError(
    `queue "${queue}": version: expected an integer of at most 2^53 - 1, or a bigint of 64 bits, got ${show(given)}; ` +
      'number the versions of a key, or take the time of the change in epoch ms',
  )
}

/** @throws PermanentError when the key is no text: versions are compared within one key */
export function entityKey(given: unknown, queue: string): string {
  if (typeof given === 'string' && given !== '') return given
  throw new PermanentError(
    `queue "${queue}": key: expected what the version counts for (an account, a product) as a text, got ${show(given)}`,
  )
}
