import { kill, pid } from 'node:process'
import { postgresInbox } from 'millrace/inbox'
import { inboxContext } from './inbox-subjects.ts'

/** A worker that is stopped in the middle of its effect: `node inbox-stopped.ts URL SCHEMA LEASE_MS`. */
const [url = '', schema = '', leaseMs = ''] = process.argv.slice(2)
const inbox = await postgresInbox({ url, schema }).connect(inboxContext())
const table = `"${schema.replaceAll('"', '""')}".effect`
const ended = inbox.run(
  { queue: 'orders', key: 'a' },
  {
    leaseMs: Number(leaseMs),
    effect: async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock(4711)')
      await tx.query(`INSERT INTO ${table} VALUES (1)`)
      console.log('inside')
      kill(pid, 'SIGSTOP')
    },
    last: async () => {
      console.log('last')
      return true
    },
  },
)
console.log(
  await ended.then(
    ({ kind }) => kind,
    () => 'failed',
  ),
)
await inbox.close()
