// Sends keys and records each one that was confirmed. Killed and started again by the campaign.
import { type BackendSpec, openStand } from './backend.ts'
import { recorder } from './recorder.ts'

const [spec, file, prefix, from, to] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
]
const record = recorder(file)
const place = JSON.parse(spec) as BackendSpec
const stand = await openStand(place)
const levels = 'levels' in place ? (place.levels ?? 1) : 1
for (let n = Number(from); n < Number(to); n++) {
  const key = `${n % 2 === 0 ? 'tx' : 'plain'}-${prefix}-${n}`
  // The key at send makes sending again after a kill store nothing new. Without it, on RabbitMQ, what is sent again is a second
  // message, and the inbox alone stands for one effect.
  const priority = n % levels
  const keyed = place.kind === 'rabbitmq' ? {} : { idempotencyKey: key }
  await stand.app.send(stand.victims, { key }, { ...keyed, ...(priority > 0 && { priority }) })
  record.note({ what: 'sent', key })
}
await stand.close()
