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

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Resolves at the first signal. Listens until the end of the process, also while servers start and stop, so that a
 * second Ctrl-C leaves none of them behind.
 */
function askedToStop(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of SIGNALS) process.on(signal, resolve)
  })
}

async function up(): Promise<void> {
  const asked = askedToStop()
  const rig = await startRig({ require: 'available' })
  describe(rig)
  for (const [name, value] of Object.entries(rig.env)) console.log(`export ${name}=${value}`)
  const alive = setInterval(() => {}, 60_000)
  await asked
  console.error('stopping')
  await rig.stop()
  clearInterval(alive)
}

async function runCommand(): Promise<void> {
  const [file, ...args] = rest
  if (file === undefined) throw new Error(USAGE)
  const asked = askedToStop()
  const rig = await startRig({ require: 'available' })
  describe(rig)
  const child = spawn(file, args, { stdio: 'inherit', env: { ...process.env, ...rig.env } })
  // Ctrl-C reaches the command by itself; a signal to us alone is handed on.
  void asked.then((signal) => signal === 'SIGINT' || child.kill(signal))
  try {
    const [code] = await once(child, 'exit')
    process.exitCode = typeof code === 'number' ? code : 1
  } finally {
    await rig.stop()
  }
}

if (verb === 'up') await up()
else if (verb === 'run') await runCommand()
else if (verb === 'down') for (const folder of sweep()) console.log(`removed ${folder}`)
else {
  console.error(USAGE)
  process.exitCode = 2
}
