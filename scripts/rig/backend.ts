/** What the rig says about one server that tests may need. */
export interface BackendReport {
  /** For people: `postgres 18`, `pgbouncer`. */
  readonly name: string
  readonly available: boolean
  /** Why it is not available, in one line. */
  readonly why?: string
  /** The command that gets it. */
  readonly command?: string
}

/** A server that runs, with what test processes need to find it. */
export interface Started {
  readonly report: BackendReport
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export function unavailable(name: string, error: unknown, command: string): BackendReport {
  return { name, available: false, why: firstLine(error), command }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.split('\n', 1)[0] ?? text
}
