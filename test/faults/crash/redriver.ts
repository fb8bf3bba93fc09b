// Redrives all dead letters. Kills itself with SIGKILL around its first step at the backend, if it is told to.
import type { Connector } from 'millrace'
import { dieNow } from '../mortal.ts'
import { type BackendSpec, openStand } from './backend.ts'
import { type RedriveKillPoint, recorder } from './recorder.ts'

const [spec, file, killAt] = process.argv.slice(2) as [string, string, string]

function die(at: RedriveKillPoint): void {
  if (at !== killAt) return
  recorder(file).note({ what: 'killed redrive', at })
  dieNow()
}

async function step<T>(run: () => Promise<T>): Promise<T> {
  die('before its step')
  const done = await run()
  die('after its step')
  return done
}

/** What a redrive is made of: one step of the backend's own, or a confirmed send before the letters are taken off their shelf. */
const mortal = (connector: Connector): Connector => ({
  name: connector.name,
  connect: async (context) => {
    const transport = await connector.connect(context)
    const { shelf } = transport
    return {
      ...transport,
      send: (queue, envelopes, options) => step(() => transport.send(queue, envelopes, options)),
      ...(shelf && {
        shelf: {
          ...shelf,
          redrive: (queue, ids, audit) => step(() => shelf.redrive(queue, ids, audit)),
        },
      }),
    }
  },
})

const stand = await openStand(JSON.parse(spec) as BackendSpec, mortal)
await stand.app.admin.deadLetters.redrive(stand.victims, { filter: {} })
await stand.close()
