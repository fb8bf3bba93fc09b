// A worker that stops itself (SIGSTOP) inside its first handler, before the effect, and goes on when it is continued.
import { type BackendSpec, openStand } from './backend.ts'
import { recorder } from './recorder.ts'

const [spec, file] = process.argv.slice(2) as [string, string]
const record = recorder(file)
const stand = await openStand(JSON.parse(spec) as BackendSpec)
let slept = false
stand.app.work(
  stand.victims,
  async (message, ctx) => {
    const { key } = message.payload
    if (!slept) {
      slept = true
      record.note({ what: 'stopped', pid: process.pid })
      process.kill(process.pid, 'SIGSTOP')
    }
    try {
      await ctx.tx((tx) => {
        const written = stand.effect(tx, key)
        return written instanceof Promise ? written.then(() => undefined) : undefined
      })
    } catch (error) {
      record.note({ what: 'refused', key, code: (error as { code: string }).code })
      throw error
    }
  },
  { concurrency: 1 },
)
await stand.app.start()
process.on('SIGTERM', () => void stand.close())
