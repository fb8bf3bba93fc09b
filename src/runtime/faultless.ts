import type { Sent } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { Transport } from '../transport/transport.ts'

/** A lost connection becomes one fault for each item that was under way. */
export async function faultless(
  transport: Transport,
  items: number,
  call: () => MaybePromise<readonly Sent[]>,
): Promise<readonly Sent[]> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof MillraceError) throw error
    const fault = transport.diagnose(error)
    return new Array<Sent>(items).fill({ ok: false, fault: { ...fault, cause: error } })
  }
}
