import { intake } from '../../http/index.ts'
import { systemClock } from '../../model/clock.ts'
import type { App, WorkOptions } from '../../runtime/app.ts'
import type { MillraceConfig } from '../../runtime/config.ts'
import { createMillrace } from '../../runtime/create-millrace.ts'
import type { Handler } from '../../runtime/message.ts'
import type { Call, Command } from '../command.ts'
import { type EventLog, eventLog } from '../event-log.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { fired, interruptions } from '../interruptions.ts'
import { loadConfig } from '../load-config.ts'
import { UsageError } from '../usage-error.ts'

export const start: Command = {
  name: 'start',
  summary: 'run the workers (and the intake) of the config file until a signal',
  operands: '',
  minOperands: 0,
  maxOperands: 0,
  options: {},
  notes: [
    'The first SIGTERM or SIGINT drains: nothing new begins, what runs may finish (at most 30 s).',
    'A second one aborts what still runs; its messages go back uncounted, and the exit code is 1.',
    'One line per event; retries with --verbose.',
  ],
  run: async (call) => {
    const events = eventLog(call, systemClock())
    // From the first moment on: a config file may take long to load, as whatever it imports does.
    const stops = interruptions(call.io)
    try {
      const config = await unlessStopped(configToStart(call), stops.first)
      if (config === undefined) events.say('stopped', 'stopped while the config file was loading')
      else await runUntil(config, events, stops)
      return stops.second.aborted ? FAILED : DONE
    } finally {
      stops.end()
    }
  },
}

async function configToStart(call: Call): Promise<MillraceConfig> {
  const { config, name } = await loadConfig(call.io.cwd, call.value('config'))
  const { workers = [] } = config
  if (workers.length > 0 || config.intake !== undefined) return config
  throw new UsageError(`${name} has neither workers nor an intake, so there is nothing to start`)
}

/** Undefined when it was stopped before. */
function unlessStopped<T>(loading: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  return Promise.race([loading, fired(stop).then(() => undefined)])
}

async function runUntil(
  config: MillraceConfig,
  events: EventLog,
  stops: { readonly first: AbortSignal; readonly second: AbortSignal },
): Promise<void> {
  const { workers = [], intake: door, ...options } = config
  const logger = config.logger ?? events.logger
  const app = await createMillrace({ ...options, signals: false, logger })
  // Nothing else may keep the process alive while queues are empty.
  const release = systemClock().after(Number.MAX_SAFE_INTEGER, () => undefined)
  const http =
    door === undefined ? undefined : intake(app, { ...door, logger: door.logger ?? logger })
  try {
    for (const { queue, handler, ...options } of workers) {
      // defineWorker paired them: the queue's schema gives what the handler takes.
      const run = handler as Handler<unknown, unknown>
      app.work(queue, run, options)
    }
    await http?.listen()
    await app.start()
    events.say('started', startedText(workers, http?.url), {
      queues: workers.map(({ queue }) => queue.name),
      intake: http?.url ?? null,
      pid: process.pid,
    })
    await fired(stops.first)
    events.say(
      'draining',
      'draining: nothing new begins, what runs may finish; a second signal aborts it',
    )
  } finally {
    await Promise.all([http?.close(), close(app, events, stops.second)])
    release()
  }
  events.say('stopped', 'stopped')
}

/** Once more, at once, when the user says so. */
async function close(app: App, events: EventLog, second: AbortSignal): Promise<void> {
  const closed = app.close()
  void fired(second).then(() => {
    events.say('aborting', 'aborting what still runs')
    return app.close({ timeoutMs: 0 })
  })
  await closed
}

function sideBySide(concurrency: WorkOptions['concurrency'] = 10): string {
  if (typeof concurrency === 'number') return String(concurrency)
  return `${concurrency.min} to ${concurrency.max}`
}

function startedText(
  workers: NonNullable<MillraceConfig['workers']>,
  url: string | undefined,
): string {
  const names = workers.map(
    ({ queue, concurrency }) => `${queue.name} (${sideBySide(concurrency)} at a time)`,
  )
  const parts = [
    ...(names.length > 0 ? [`working on ${names.join(', ')}`] : []),
    ...(url === undefined ? [] : [`intake at ${url}`]),
  ]
  return `started: ${parts.join('; ')}`
}
