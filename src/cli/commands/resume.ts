import { hasCode } from '../../model/errors.ts'
import { hasKillSwitch, storeOf, storeToMigrate } from '../../runtime/own-store.ts'
import type { Call, Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { type OpenApp, queueNamed, withApp } from '../with-app.ts'

export const resume: Command = {
  name: 'resume',
  summary: 'hand out messages again',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: {},
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      await open.app.admin.resume(queue)
      if (call.out.json) call.out.data({ queue: queue.name, paused: false })
      else call.out.line(`resumed ${queue.name}`)
      const why = await whyUnheard(call, open, queue.name)
      if (why !== undefined) {
        call.out.note(
          `millrace: a consumer of ${queue.name} that its kill switch stopped does not hear of it: ${why}`,
        )
      }
      return DONE
    }),
}

/** Where the config file has a worker with a kill switch for it. */
async function whyUnheard(
  call: Call,
  { config }: OpenApp,
  queue: string,
): Promise<string | undefined> {
  const { workers = [] } = config
  const stoppable = workers.filter((worker) => worker.queue.name === queue && hasKillSwitch(worker))
  // The store of the app is open, so it is up to date.
  if (stoppable.length === 0 || storeOf(config) !== undefined) return undefined
  const store = storeToMigrate(config)
  if (store === undefined) return 'there is no store between the processes; name one'
  if (store.migrationSql === undefined) return undefined
  try {
    await withApp(call, 'check', () => Promise.resolve(), storeToMigrate)
    return undefined
  } catch (error) {
    if (!hasCode(error, 'MILLRACE_SCHEMA_OUTDATED')) throw error
    return 'the tables of the store are missing; run millrace migrate'
  }
}
