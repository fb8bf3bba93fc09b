/** What the command line talks to; `process` fits, and so does a test. */
export interface CliIo {
  readonly stdout: TextSink
  readonly stderr: TextSink
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where config files are looked for and relative paths start. */
  readonly cwd: string
  /** Fires when the command should come to an end: what runs is finished or stopped between two steps. */
  readonly signal: AbortSignal
  /** For `send -` and `--batch`. Default: the process's. */
  readonly stdin?: AsyncIterable<Uint8Array | string>
}

export interface TextSink {
  write(text: string): unknown
}
