import { parseArgs } from 'node:util'

export interface ExampleOptions {
  /** Where events come in. Default 4000. */
  readonly port: number
  /** Where our own receiver listens. Default 4001. */
  readonly receiverPort: number
  /** The SQLite file. Default millrace.db in the current folder. */
  readonly file: string
}

/** `--port`, `--receiver-port`, `--file`; for the file also WEBHOOK_FILE, which the command line reads too. */
export function readOptions(args: readonly string[]): ExampleOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '4000' },
      'receiver-port': { type: 'string', default: '4001' },
      file: { type: 'string', default: process.env['WEBHOOK_FILE'] ?? 'millrace.db' },
    },
  })
  return {
    port: portOf('--port', values.port),
    receiverPort: portOf('--receiver-port', values['receiver-port']),
    file: values.file,
  }
}

function portOf(option: string, text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new Error(`${option}: expected a port from 0 to 65535, got ${JSON.stringify(text)}`)
}
