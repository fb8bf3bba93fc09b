import { hasPassword } from './backend.ts'
import { deliveries } from './deliveries.ts'

/** Where messages and dead letters are, for the command line. */
export interface Storage {
  readonly file: string
  readonly transport: string | undefined
}

export interface Place extends Storage {
  readonly intakeUrl: string
  readonly receiverUrl: string
}

const CONFIG = 'examples/webhook-delivery/millrace.config.ts'

/** What to try next; each command stands on a line of its own and can be pasted as it is. */
export function hints({ intakeUrl, receiverUrl, ...storage }: Place): readonly string[] {
  const queue = deliveries.name
  const event = (eventId: string, path: string): string =>
    `curl -s -w '\\n' ${intakeUrl}/queues/${queue}/messages -H 'content-type: application/json' ` +
    `-d '${JSON.stringify({ eventId, url: `${receiverUrl}${path}`, body: { hello: eventId } })}'`
  return [
    ...secretHint(storage),
    '# an event to a receiver that answers 200',
    event('evt-ok', '/ok'),
    '# one that fails twice, then succeeds: two retries',
    event('evt-flaky', '/flaky'),
    '# one that always answers 500: dead after 4 attempts, within about 4 s',
    event('evt-500', '/500'),
    '# one that answers 429 with Retry-After: 2 twice: waits as told, spends no attempt',
    event('evt-429', '/429'),
    '# one that answers 410: dead at once',
    event('evt-410', '/410'),
    '# one that takes 10 s: press Ctrl-C meanwhile, and it is finished first',
    event('evt-slow', '/slow'),
    '# the dead letters',
    cli(storage, `dlq ls ${queue}`),
    '# the newest one, with every attempt',
    cli(storage, `dlq show ${queue}`),
    '# mend the receiver, then send all dead letters back',
    `curl -s -X POST ${receiverUrl}/repair`,
    cli(storage, `dlq redrive ${queue} --all`),
    '# how the queue is doing',
    cli(storage, `stats ${queue}`),
  ]
}

/** To look at one dead letter. */
export function showHint(storage: Storage, id: string): string {
  return cli(storage, `dlq show ${deliveries.name} ${id}`)
}

/** A password is not printed: whoever pastes the lines below has to say the address once more. */
function secretHint({ transport }: Storage): readonly string[] {
  if (transport === undefined || !hasPassword(transport)) return []
  return ['# in the other terminal first: export WEBHOOK_TRANSPORT=<the same address>']
}

/** An npm script, because it runs on the repository's own Node whatever the machine has. */
function cli({ file, transport }: Storage, command: string): string {
  const place = [
    ...(file === 'millrace.db' ? [] : [`WEBHOOK_FILE='${file}' `]),
    ...(transport === undefined || hasPassword(transport)
      ? []
      : [`WEBHOOK_TRANSPORT='${transport}' `]),
  ]
  return `${place.join('')}npm run -s millrace -- ${command} --config ${CONFIG}`
}
