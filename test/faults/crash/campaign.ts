import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type BackendSpec, openStand, type Stand } from './backend.ts'
import { type KillPoint, killPoints, recorded, redriveKillPoints } from './recorder.ts'
import { redriving } from './redriving.ts'

export interface CampaignOptions {
  readonly spec: BackendSpec
  readonly recordFile: string
  readonly kills: number
  readonly messages: number
  readonly seed: () => number
  readonly deadlineMs: number
}

export interface CampaignReport {
  readonly sent: ReadonlySet<string>
  readonly kills: ReadonlyMap<KillPoint, number>
  readonly effects: ReadonlyMap<string, number>
  readonly starts: ReadonlyMap<string, number>
  readonly ended: ReadonlySet<string>
  /** How many runs failed as they were told to. */
  readonly failed: Readonly<Record<'transient' | 'permanent', number>>
  readonly killedRedrives: number
  /** Of those that did not fail for good by themselves, and what nobody redrove. By key, why. */
  readonly dead: ReadonlyMap<string, string>
  readonly left: number
}

const WORKERS = 3

/** Producers and workers as processes, killed at named points, until everything is handled or the deadline is over. */
export async function campaign(options: CampaignOptions): Promise<CampaignReport> {
  const { spec, recordFile } = options
  const observer = await openStand(spec)
  const children = new Set<ChildProcess>()
  const run = (program: string, args: readonly string[]): ChildProcess => {
    const child = spawn(
      process.execPath,
      [
        '--conditions=millrace-source',
        '--disable-warning=ExperimentalWarning',
        fileURLToPath(new URL(program, import.meta.url)),
        JSON.stringify(spec),
        recordFile,
        ...args,
      ],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    )
    children.add(child)
    child.once('exit', () => children.delete(child))
    return child
  }
  try {
    const deadline = Date.now() + options.deadlineMs
    const producing = produce(run, options, deadline)
    const working = Array.from({ length: WORKERS }, () => keepWorking(run, options, deadline))
    const killAt = redriveKillPoints[Math.floor(options.seed() * redriveKillPoints.length)]
    const redrives = redriving({ run, observer, recordFile, killAt, deadline })
    await producing
    const left = await settled(observer, options, deadline)
    const blamed = await redrives.end()
    stopped.add(options)
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(working)
    // Only now can be seen what these had in hand.
    if (left === 'unknown') await drained(run, observer, deadline)
    const ready = left === 'unknown' ? await readyOn(observer) : left
    return await report(observer, recordFile, ready, blamed)
  } finally {
    stopped.add(options)
    for (const child of children) child.kill('SIGKILL')
    await observer.close()
  }
}

/** Campaigns that are over: their workers are not started again. */
const stopped = new WeakSet<CampaignOptions>()

export type Run = (program: string, args: readonly string[]) => ChildProcess

/** Sent in addition, as long as workers have too little work to die at. */
const MORE = 30

/**
 * One producer sends everything; it is killed twice on the way and started again with what was not confirmed. When all is sent before
 * the workers have been killed often enough, it sends more.
 */
async function produce(run: Run, options: CampaignOptions, deadline: number): Promise<void> {
  for (let round = 0; Date.now() < deadline; round++) {
    const { confirmed, killed } = counted(options)
    if (confirmed >= options.messages && killed >= options.kills) return
    const upTo = Math.max(options.messages, confirmed + MORE)
    const child = run('producer.ts', ['p', String(confirmed), String(upTo)])
    const exited = once(child, 'exit')
    if (round < 2) {
      const target = confirmed + Math.floor(options.messages / 4)
      while (child.exitCode === null && child.signalCode === null) {
        if (counted(options).confirmed >= target) child.kill('SIGKILL')
        await wait(20)
      }
    }
    await exited
  }
}

function counted({ recordFile }: CampaignOptions): { confirmed: number; killed: number } {
  const events = recorded(recordFile)
  const times = (what: string): number => events.filter((event) => event.what === what).length
  return { confirmed: times('sent'), killed: times('killed') }
}

/** A worker process that is started again whenever it has killed itself, until the campaign has its kills. */
async function keepWorking(run: Run, options: CampaignOptions, deadline: number): Promise<void> {
  while (!stopped.has(options) && Date.now() < deadline) {
    const at =
      counted(options).killed < options.kills
        ? killPoints[Math.floor(options.seed() * killPoints.length)]
        : 'never'
    const child = run('worker.ts', [String(at), String(Math.floor(options.seed() * 6))])
    await once(child, 'exit')
  }
}

/**
 * Waits until nothing is ready, scheduled or in flight any more; answers what is left at the deadline. Where the broker does not tell
 * what is in flight: until nothing is ready and all that was sent has been run.
 */
async function settled(
  observer: Stand,
  { recordFile }: CampaignOptions,
  deadline: number,
): Promise<number | 'unknown'> {
  for (;;) {
    const {
      depth,
      scheduled,
      inFlight,
      dead = 0,
    } = await observer.app.admin.stats(observer.victims)
    const left = (depth ?? 0) + (scheduled ?? 0) + (inFlight ?? 0) + dead
    const isRun = inFlight !== undefined || (await allRun(observer, recordFile))
    const isOver = left === 0 && isRun
    if (isOver || Date.now() > deadline) return inFlight === undefined ? 'unknown' : left
    await wait(100)
  }
}

async function allRun(observer: Stand, recordFile: string): Promise<boolean> {
  const effects = await observer.effects()
  const events = recorded(recordFile)
  const ended = new Set(events.flatMap((one) => (one.what === 'ended' ? [one.key] : [])))
  return events.every(
    (one) => one.what !== 'sent' || (one.key.startsWith('tx-') ? effects : ended).has(one.key),
  )
}

async function readyOn(observer: Stand): Promise<number> {
  return (await observer.app.admin.stats(observer.victims)).depth ?? 0
}

/** How often in a row nothing is ready: a broker makes what an ended worker had in hand ready a moment after its end. */
const EMPTY_LOOKS = 10

/** What a worker gives back as it ends is ready again: others get it, until one ends and leaves nothing. */
async function drained(run: Run, observer: Stand, deadline: number): Promise<void> {
  while (!(await staysEmpty(observer)) && Date.now() < deadline) {
    const child = run('worker.ts', ['never', '0'])
    const exited = once(child, 'exit')
    while ((await readyOn(observer)) > 0 && Date.now() < deadline) await wait(100)
    child.kill('SIGTERM')
    await exited
  }
}

async function staysEmpty(observer: Stand): Promise<boolean> {
  for (let look = 0; look < EMPTY_LOOKS; look++) {
    if ((await readyOn(observer)) > 0) return false
    await wait(100)
  }
  return true
}

async function report(
  observer: Stand,
  recordFile: string,
  left: number,
  blamed: ReadonlyMap<string, string>,
): Promise<CampaignReport> {
  const events = recorded(recordFile)
  const kills = new Map<KillPoint, number>()
  const starts = new Map<string, number>()
  const [sent, ended] = [new Set<string>(), new Set<string>()]
  const failed = { transient: 0, permanent: 0 }
  let killedRedrives = 0
  for (const event of events) {
    if (event.what === 'killed') kills.set(event.at, (kills.get(event.at) ?? 0) + 1)
    if (event.what === 'started') starts.set(event.key, (starts.get(event.key) ?? 0) + 1)
    if (event.what === 'sent') sent.add(event.key)
    if (event.what === 'ended') ended.add(event.key)
    if (event.what === 'failed') failed[event.as] += 1
    if (event.what === 'killed redrive') killedRedrives += 1
  }
  const dead = await observer.app.admin.deadLetters.list(observer.victims, { limit: 500 })
  return {
    ...{ sent, ended, failed, killedRedrives },
    kills,
    starts,
    effects: await observer.effects(),
    dead: new Map([
      ...blamed,
      ...dead.items.map(({ idempotencyKey, reason }) => [idempotencyKey, reason] as const),
    ]),
    left,
  }
}
