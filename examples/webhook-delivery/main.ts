// Webhook delivery: events come in by HTTP, are stored, and go out as webhooks that fail in every way.
import { createMillrace } from 'millrace'
import { intake } from 'millrace/http'
import { deliver, deliveries } from './deliveries.ts'
import { hints, showHint } from './hints.ts'
import { readOptions, USAGE, UsageError } from './options.ts'
import { startReceiver } from './receiver.ts'
import { untilSignal } from './until-signal.ts'

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
  const { port, receiverPort, file } = options
  // The config file reads it, here and when the command line loads it in another terminal.
  process.env['WEBHOOK_FILE'] = file
  const receiver = await startReceiver(receiverPort, print)
  try {
    await serve({ port, file, receiverUrl: receiver.url })
  } finally {
    await receiver.close()
  }
  print('bye')
}

interface Service {
  readonly port: number
  readonly file: string
  readonly receiverUrl: string
}

async function serve({ port, file, receiverUrl }: Service): Promise<void> {
  const { default: config } = await import('./millrace.config.ts')
  const app = await createMillrace({
    ...config,
    onDeadLetter: ({ id, errorClass, owner }) => {
      print(`dead letter (${errorClass}), ${owner} should look at it:`)
      print(showHint(file, id))
    },
  })
  const door = intake(app, { port })
  try {
    app.work(deliveries, deliver, { concurrency: 20 })
    await door.listen()
    await app.start()
    for (const line of hints({ intakeUrl: door.url, receiverUrl, file })) print(line)
    print(`webhook-delivery is ready: ${door.url} stores in ${file}, receiver at ${receiverUrl}`)
    await untilSignal(() => {
      print('aborting what still runs')
      void app.close({ timeoutMs: 0 })
    })
    print('draining: what runs may finish, press Ctrl-C again to abort it')
  } finally {
    await door.close()
    await app.close()
  }
}
