// Webhook delivery: events come in by HTTP, are stored, and go out as webhooks that fail in every way.
import { constants } from 'node:os'
import { type App, createMillrace, onSignals } from 'millrace'
import { intake } from 'millrace/http'
import { shownAddress } from './backend.ts'
import { deliver, deliveries } from './deliveries.ts'
import { hints, type Storage, showHint } from './hints.ts'
import { readOptions, USAGE, UsageError } from './options.ts'
import { startReceiver } from './receiver.ts'

const print = (line: string): void => console.log(line)

try {
  await run()
} catch (error) {
  console.error(`webhook-delivery: ${error instanceof Error ? error.message : String(error)}`)
  const isUsage = error instanceof UsageError
  if (isUsage) console.error(USAGE)
  process.exitCode = isUsage ? 2 : 1
}

async function run(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') return print(USAGE)
  const { port, receiverPort, file, transport } = options
  // The config file reads them, here and when the command line loads it in another terminal.
  process.env['WEBHOOK_FILE'] = file
  if (transport !== undefined) process.env['WEBHOOK_TRANSPORT'] = transport
  const receiver = await startReceiver(receiverPort, print)
  try {
    await serve({ port, storage: { file, transport }, receiverUrl: receiver.url })
  } finally {
    await receiver.close()
  }
  print('bye')
}

interface Service {
  readonly port: number
  readonly storage: Storage
  readonly receiverUrl: string
}

async function serve({ port, storage, receiverUrl }: Service): Promise<void> {
  const { default: config } = await import('./millrace.config.ts')
  const app = await createMillrace({
    ...config,
    onDeadLetter: ({ id, errorClass, owner }) => {
      print(`dead letter (${errorClass}), ${owner} should look at it:`)
      print(showHint(storage, id))
    },
  })
  const door = intake(app, { port })
  try {
    app.work(deliveries, deliver, { concurrency: 20 })
    await door.listen()
    await app.start()
    for (const line of hints({ ...storage, intakeUrl: door.url, receiverUrl })) print(line)
    const { file, transport } = storage
    const place = transport === undefined ? file : shownAddress(transport)
    print(`webhook-delivery is ready: ${door.url} stores in ${place}, receiver at ${receiverUrl}`)
    await untilSignal(app)
    print('draining: what runs may finish, press Ctrl-C again to abort it')
  } finally {
    await door.close()
    await app.close()
  }
}

/** Resolves at the first signal. A second one aborts, and the exit code says by which: 130 or 143. */
function untilSignal(app: App): Promise<void> {
  return new Promise((resolve) => {
    onSignals({
      first: () => resolve(),
      second: (signal) => {
        const left = `aborting what still runs (${running(app)})`
        print(`${left}: those messages go back, at the latest when their leases end`)
        process.exitCode = 128 + constants.signals[signal]
        void app.close({ timeoutMs: 0 })
      },
    })
  })
}

function running(app: App): number {
  const {
    started = 0,
    acked = 0,
    released = 0,
    dead = 0,
    lost = 0,
  } = app.counters()[deliveries.name] ?? {}
  return Math.max(0, started - acked - released - dead - lost)
}
