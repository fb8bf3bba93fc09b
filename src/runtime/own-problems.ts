import type { Parts } from './parts.ts'

/** What is wrong and no call would tell; one sentence for what several parts share. */
export function problemsOf<Tx>({
  store,
  transport,
  inbox,
  outbox,
  blobs,
}: Parts<Tx>): ReadonlySet<string> {
  return new Set(
    [store, transport, inbox, outbox, blobs].flatMap((part) => part?.problems?.() ?? []),
  )
}
