import { backendError } from '../model/backend-error.ts'
import type { Browse, Shelf, Transport } from '../transport/transport.ts'

type Act<Args extends readonly unknown[], Result> = (
  queue: string,
  ...args: Args
) => Promise<Result>

/**
 * The same transport, whose acts for people reject with errors of ours instead of those of a client library: the one place
 * where this is done for every backend.
 */
export function diagnosed(transport: Transport): Transport {
  const guard =
    <Args extends readonly unknown[], Result>(
      act: Act<Args, Result>,
      reads: boolean,
    ): Act<Args, Result> =>
    async (queue, ...args) => {
      try {
        return await act(queue, ...args)
      } catch (cause) {
        const fault = { ...transport.diagnose(cause), cause }
        throw backendError(fault, { where: `queue "${queue}"`, reads, fields: { queue } })
      }
    }
  const reading = <Args extends readonly unknown[], Result>(act: Act<Args, Result>) =>
    guard(act, true)
  const changing = <Args extends readonly unknown[], Result>(act: Act<Args, Result>) =>
    guard(act, false)
  const { browse, shelf } = transport
  return {
    ...transport,
    ...(browse === undefined ? {} : { browse: diagnosedBrowse(browse, reading, changing) }),
    ...(shelf === undefined ? {} : { shelf: diagnosedShelf(shelf, reading, changing) }),
  }
}

type Guard = <Args extends readonly unknown[], Result>(act: Act<Args, Result>) => Act<Args, Result>

function diagnosedBrowse(browse: Browse, reading: Guard, changing: Guard): Browse {
  const { gauge, get, cancel, setPaused, purge } = browse
  return {
    gauge: reading(gauge),
    ...(get === undefined ? {} : { get: reading(get) }),
    ...(cancel === undefined ? {} : { cancel: changing(cancel) }),
    ...(setPaused === undefined ? {} : { setPaused: changing(setPaused) }),
    ...(purge === undefined ? {} : { purge: changing(purge) }),
  }
}

function diagnosedShelf(shelf: Shelf, reading: Guard, changing: Guard): Shelf {
  return {
    list: reading(shelf.list),
    get: reading(shelf.get),
    count: reading(shelf.count),
    audit: reading(shelf.audit),
    redrive: changing(shelf.redrive),
    discard: changing(shelf.discard),
  }
}
