import type { BackendView } from '../admin/admin.ts'
import { missingOutbox } from './missing-outbox.ts'
import { problemsOf } from './own-problems.ts'
import type { Parts } from './parts.ts'

const WITHOUT_STORE: Readonly<Record<string, string>> & { readonly others: string } = {
  crashes: 'the app has no store; a message that kills its worker comes back each time',
  others: 'the app has no store; who asks for it is refused',
}

/** For `millrace doctor`, and whoever wants to know what an app rests on. */
export function backendView<Tx>(parts: Parts<Tx>): BackendView {
  const { transport, store, claimCheck, abilities } = parts
  return {
    name: transport.name,
    store: store?.name,
    durability: transport.traits.durability,
    facts: transport.facts ?? [],
    abilities: abilities.map(({ need, from, how }) =>
      from === 'store' && store === undefined
        ? { need, from: 'nobody', how: WITHOUT_STORE[need] ?? WITHOUT_STORE.others }
        : { need, from, how },
    ),
    claimCheck: claimCheck && {
      blobs: claimCheck.blobs.name,
      aboveBytes: claimCheck.aboveBytes,
      maxBytes: claimCheck.blobs.maxBytes,
      keepMs: claimCheck.keepMs,
    },
    notes: missingOutbox(parts),
    problems: [...problemsOf(parts)],
  }
}
