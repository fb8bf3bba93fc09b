import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { FAMILIES, type Family, familiesOf } from './backend.ts'
import { sweep } from './private-folder.ts'
import { LEFT_OUT, type Rig, startRig } from './rig.ts'

const USAGE = `usage: npx node scripts/rig/main.ts up [--only LIST]                 start servers, print their addresses, stop at Ctrl-C
       npx node scripts/rig/main.ts run [--only LIST] [--] COMMAND…  run a command with servers, then stop them
       npx node scripts/rig/main.ts down                             remove what a killed run left behind
LIST: ${FAMILIES.join(',')}, or some of these; default: all`

const [verb, ...rest] = process.argv.slice(2)

/** Takes `--only LIST` from the front of the arguments. */
function takeOnly(args: string[]): readonly Family[] | undefined {
  if (args[0] !== '--only') return undefined
  const [, list] = args.splice(0, 2)
  return familiesOf(list ?? '')
}

function describe(rig: Rig): void {
  for (const { name, available, version, why, command } of rig.backends) {
    if (why === LEFT_OUT) continue
    const ready = version === undefined ? `${name}: ready` : `${name}: ready, ${version}`
    console.error(available ? ready : `${name}: not available: ${why}; ${command}`)
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
  const only = takeOnly(rest)
  const asked = askedToStop()
  const rig = await startRig({ require: 'available', only })
  describe(rig)
  const addresses = Object.entries(rig.env)
  for (const [name, value] of addresses) console.log(`export ${name}=${value}`)
  console.error(`${addresses.length} addresses, until Ctrl-C`)
  const alive = setInterval(() => {}, 60_000)
  await asked
  console.error('stopping')
  await rig.stop()
  clearInterval(alive)
}

async function runCommand(): Promise<void> {
  const only = takeOnly(rest)
  const [file, ...args] = rest[0] === '--' ? rest.slice(1) : rest
  if (file === undefined) return refuse(USAGE)
  const asked = askedToStop()
  const rig = await startRig({ require: 'available', only })
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

function refuse(why: string): void {
  console.error(why)
  process.exitCode = 2
}

try {
  if (verb === 'up') await up()
  else if (verb === 'run') await runCommand()
  else if (verb === 'down') for (const folder of sweep()) console.log(`removed ${folder}`)
  else refuse(USAGE)
} catch (error) {
  refuse(error instanceof Error ? error.message : String(error))
}
