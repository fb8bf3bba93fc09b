import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backend, findOrStart } from '../../scripts/rig/backend.ts'
import { startRig } from '../../scripts/rig/rig.ts'

const VARIABLE = 'MILLRACE_TEST_OF_A_TEST_URL'

/** A backend whose server is only said to be there. */
function backend(own: Partial<Backend> = {}) {
  const acts: string[] = []
  const made: Backend = {
    ...{ name: 'one', family: 'nats', variable: VARIABLE, command: 'npm install one' },
    answers: async (address) => address === 'there',
    start: async () => {
      acts.push('start')
      return { env: { [VARIABLE]: 'own' }, version: '1', stop: async () => void acts.push('stop') }
    },
    ...own,
  }
  return { made, acts }
}

test('A server whose address is given is used and never stopped, and one that is silent is missing.', async (t) => {
  t.after(() => delete process.env[VARIABLE])
  const { made, acts } = backend()
  process.env[VARIABLE] = 'there'
  const used = await findOrStart(made)
  assert.ok('report' in used && used.report.available)
  assert.deepEqual(used.env, { [VARIABLE]: 'there' })
  await used.stop()
  process.env[VARIABLE] = 'elsewhere'
  assert.deepEqual(await findOrStart(made), {
    name: 'one',
    available: false,
    why: `no answer from the address in ${VARIABLE}`,
    command: `start it, or unset ${VARIABLE}`,
  })
  assert.deepEqual(acts, [])
})

test('Without an address a server is started and stopped, and one that does not start is missing, with what gets it.', async () => {
  const { made, acts } = backend()
  const started = await findOrStart(made)
  assert.ok('report' in started)
  assert.deepEqual(started.report, { name: 'one', available: true, version: '1' })
  assert.deepEqual(started.env, { [VARIABLE]: 'own' })
  await started.stop()
  assert.deepEqual(acts, ['start', 'stop'])
  const { made: broken } = backend({ start: () => Promise.reject(new Error('no binary')) })
  const { available, why, command } = Object(await findOrStart(broken))
  assert.deepEqual([available, why, command], [false, 'no binary', 'npm install one'])
})

test('Where the address of Postgres is given, the rig starts none beside it.', async (t) => {
  const own = { ...process.env }
  t.after(() => Object.assign(process.env, own))
  for (const name of Object.keys(own))
    if (name.startsWith('MILLRACE_TEST_')) delete process.env[name]
  process.env['MILLRACE_TEST_POSTGRES_URL'] = 'postgres://127.0.0.1:1/none'
  t.after(() => delete process.env['MILLRACE_TEST_POSTGRES_URL'])
  const rig = await startRig({ require: 'available', only: ['postgres'] })
  await rig.stop()
  const postgres = rig.backends.filter(({ name }) => name.startsWith('postgres'))
  assert.deepEqual(
    postgres.map(({ name, why }) => `${name}: ${why}`),
    ['postgres: no answer from the address in MILLRACE_TEST_POSTGRES_URL'],
  )
  assert.deepEqual(rig.env, {})
})
