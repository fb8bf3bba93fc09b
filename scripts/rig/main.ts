import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sweep } from './private-folder.ts'
import { type Rig, startRig } from './rig.ts'

const USAGE = `usage: node scripts/rig/main.ts up              start the servers, print their addresses, stop at Ctrl-C
       node scripts/rig/main.ts run COMMAND…    run a command with the servers, then stop them
       node scripts/rig/main.ts down            remove what a killed run left behind`

const [verb, ...rest] = process.argv.slice(2)

function describe(rig: Rig): void {
  for (const { name, available, why, command } of rig.backends) {
    console.error(available ? `${name}: ready` : `${name}: not available: ${why}; ${command}`)
  }
}

async function up(): Promise<void> {
  const rig = await startRig({ require: 'available' })
  describe(rig)
  for (const [name, value] of Object.entries(rig.env)) console.log(`export ${name}=${value}`)
  const alive = setInterval(() => {}, 60_000)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  clearInterval(alive)
  await rig.stop()
}

async function runCommand(): Promise<void> {
  const [file, ...args] = rest
  if (file === undefined) throw new Error(USAGE)
  const rig = await startRig({ require: 'available' })
  describe(rig)
  process.on('SIGINT', () => {})
  const child = spawn(file, args, { stdio: 'inherit', env: { ...process.env, ...rig.env } })
  const [code] = await once(child, 'exit')
  await rig.stop()
  process.exitCode = typeof code === 'number' ? code : 1
}

if (verb === 'up') await up()
else if (verb === 'run') await runCommand()
else if (verb === 'down') for (const folder of sweep()) console.log(`removed ${folder}`)
else {
  console.error(USAGE)
  process.exitCode = 2
}
