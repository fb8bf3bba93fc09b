import { parseArgs } from 'node:util'
import { isKnownAddress, schemes } from './backend.ts'

export interface ExampleOptions {
  /** Where events come in. Default 4000. */
  readonly port: number
  /** Where our own receiver listens. Default 4001. */
  readonly receiverPort: number
  /** The SQLite file: of everything, or of the store beside a broker. Default millrace.db in the current folder. */
  readonly file: string
  /** The address of another backend; undefined: all is in the file. */
  readonly transport: string | undefined
}

export const USAGE = `usage: npm start -- [--port <port>] [--receiver-port <port>] [--file <file>] [--transport <address>]

  --port           where events come in; default 4000, 0 takes a free one
  --receiver-port  where the receiver of the example listens; default 4001
  --file           the SQLite file; default $WEBHOOK_FILE, else millrace.db
  --transport      redis://…, postgres://…, amqp://… or nats://… instead of the file; default $WEBHOOK_TRANSPORT
  --help           print this`

/** What was typed cannot be; the exit code is 2 then. */
export class UsageError extends Error {}

/** `--port`, `--receiver-port`, `--file`, `--transport`; of the last two also WEBHOOK_FILE and WEBHOOK_TRANSPORT, which the command line reads too. */
export function readOptions(args: readonly string[]): ExampleOptions | 'help' {
  const values = parsed(args)
  if (values.help) return 'help'
  return {
    port: portOf('--port', values.port),
    receiverPort: portOf('--receiver-port', values['receiver-port']),
    file: fileOf(values.file),
    transport: transportOf(values.transport),
  }
}

function parsed(args: readonly string[]) {
  const config = {
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      port: { type: 'string', default: '4000' },
      'receiver-port': { type: 'string', default: '4001' },
      file: { type: 'string', default: process.env['WEBHOOK_FILE'] ?? 'millrace.db' },
      transport: { type: 'string', default: process.env['WEBHOOK_TRANSPORT'] ?? '' },
    },
  } as const
  try {
    return parseArgs(config).values
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? firstLine(cause.message) : String(cause), {
      cause,
    })
  }
}

function firstLine(text: string): string {
  return text.split(/\n|\. /, 1)[0] ?? text
}

function fileOf(text: string): string {
  if (text !== '') return text
  throw new UsageError('--file: expected the name of a file, got nothing')
}

/** The address is not shown: it may hold a password. */
function transportOf(text: string): string | undefined {
  if (text === '') return undefined
  if (isKnownAddress(text)) return text
  const known = schemes().map((scheme) => `${scheme}://`)
  throw new UsageError(`--transport: expected an address that begins with ${known.join(', ')}`)
}

function portOf(option: string, text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new UsageError(`${option}: expected a port from 0 to 65535, got ${JSON.stringify(text)}`)
}
