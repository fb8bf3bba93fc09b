// A worker that kills itself with SIGKILL at a named point, once, and works honestly otherwise.
import { type Connector, PermanentError, TransientError } from 'millrace'
import { aroundSettlements, dieNow } from '../mortal.ts'
import { type BackendSpec, openStand } from './backend.ts'
import { type KillPoint, recorded, recorder } from './recorder.ts'

const [spec, file, killAt, killAfter] = process.argv.slice(2) as [string, string, string, string]
const record = recorder(file)
let countdown = Number(killAfter)
/**
 * Messages whose first attempt runs here: only these are killed, so that none meets its death three times. A delivery of a log says
 * nothing of attempts, and what the inbox knows already is settled without any.
 */
const firsts = new Set<string>()

function die(at: KillPoint): void {
  if (at !== killAt || countdown-- > 0) return
  record.note({ what: 'killed', at })
  dieNow()
}

/** Some fail at first, so that they go back, by a copy where the backend has no other way; some for good, until that is mended. */
function fail(key: string, isFirst: boolean): void {
  if (isFirst && /[05]$/.test(key)) {
    record.note({ what: 'failed', key, as: 'transient' })
    throw new TransientError('not at first')
  }
  if (/[38]$/.test(key) && !recorded(file).some(({ what }) => what === 'mended')) {
    record.note({ what: 'failed', key, as: 'permanent' })
    throw new PermanentError('not before it is mended')
  }
}

/** The transport, with a death before or after it settles. */
const mortal = (connector: Connector): Connector =>
  aroundSettlements(connector, async (batch, settle) => {
    const fresh = batch.some((one) => firsts.has(one.delivery.envelope.id))
    if (fresh) die('before the settlement')
    const settled = await settle(batch)
    if (fresh) die('after the settlement')
    return settled
  })

const stand = await openStand(JSON.parse(spec) as BackendSpec, mortal)
stand.app.work(
  stand.victims,
  async (message, ctx) => {
    const { key } = message.payload
    record.note({ what: 'started', key, attempt: message.attempt })
    const mine = message.attempt === 1
    if (mine) firsts.add(message.id)
    if (mine) die('before the handler')
    fail(key, mine)
    // Every other message has its effect in the transaction; the rest is recorded at the ack.
    if (key.startsWith('tx-')) {
      await ctx.tx((tx) => {
        const written = stand.effect(tx, key)
        if (mine) die('in the effect')
        return written instanceof Promise ? written.then(() => undefined) : undefined
      })
      if (mine) die('after the commit, before the end')
    }
    record.note({ what: 'ended', key })
  },
  { concurrency: 4 },
)
await stand.app.start()
process.on('SIGTERM', () => void stand.close())
