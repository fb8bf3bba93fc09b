import type { Parts } from './parts.ts'

/** What is wrong and no call would tell; one sentence for what several parts share. */
export function problemsOf<Tx>({
  store,
  transport,
  inbox,
  outbox,
}: Parts<Tx>): ReadonlySet<string> {
  return new Set([store, transport, inbox, outbox].flatMap((part) => part?.problems?.() ?? []))
}
