import type { Sent } from '../model/delivery.ts'
import { hasCode, MillraceError } from '../model/errors.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { Transport } from '../transport/transport.ts'

/**
 * A lost connection becomes one fault for each item that was under way. An answer that did not come in time is one too:
 * the transport says that it is away, and only its diagnosis tells whether the statement had been sent.
 */
export async function faultless(
  transport: Transport,
  items: number,
  call: () => MaybePromise<readonly Sent[]>,
): Promise<readonly Sent[]> {
  try {
    return await call()
  } catch (error) {
    const fault = transport.diagnose(error)
    const unsure = hasCode(error, 'MILLRACE_UNAVAILABLE') && fault.outcome === 'unknown'
    if (error instanceof MillraceError && !unsure) throw error
    return new Array<Sent>(items).fill({ ok: false, fault: { ...fault, cause: error } })
  }
}
