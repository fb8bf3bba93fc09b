import type { BackendView } from '../../admin/admin.ts'
import type { AnyQueue } from '../../runtime/queue.ts'
import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { table } from '../terminal-text.ts'
import { withApp } from '../with-app.ts'

export const doctor: Command = {
  name: 'doctor',
  summary: 'show what the backend does by itself, who brings the rest, and what is wrong',
  operands: '',
  minOperands: 0,
  maxOperands: 0,
  options: {},
  notes: [
    'Ends with 1 when something is wrong.',
    "Also names the queues with capacity: 'unbounded', and an outbox that may be missing; those are notes, no failures.",
  ],
  run: (call) =>
    withApp(call, 'check', async ({ app, config }) => {
      const health = await app.health()
      const view = app.admin.backend()
      const unbounded = unboundedOf(config.queues)
      if (call.out.json) call.out.data({ ...view, unbounded, health })
      else for (const line of lines(view, unbounded, health.reasons)) call.out.line(line)
      return health.ok ? DONE : FAILED
    }),
}

const HEAD = ['NEED', 'FROM', 'HOW']

const SURVIVES = {
  process: 'the end of a process, not a power cut',
  disk: 'a power cut of its machine',
  replicated: 'the loss of a machine',
} as const satisfies Record<BackendView['durability'], string>

/** The names of the queues that nothing but the backend bounds. */
function unboundedOf(queues: readonly AnyQueue[]): readonly string[] {
  return queues.filter(({ capacity }) => capacity === 'unbounded').map(({ name }) => name)
}

function lines(
  view: BackendView,
  unbounded: readonly string[],
  reasons: readonly string[],
): readonly string[] {
  return [
    `backend: ${view.name}${view.store === undefined ? '' : `, store: ${view.store}`}`,
    `a confirmed message survives ${SURVIVES[view.durability]}`,
    ...view.facts,
    '',
    ...table(
      HEAD,
      view.abilities.map(({ need, from, how }) => [need, from, how]),
    ),
    ...claimCheckLines(view),
    '',
    ...view.notes.map((note) => `note: ${note}`),
    ...unbounded.map(
      (name) =>
        `note: queue "${name}" is unbounded (capacity: 'unbounded'): it grows until the backend is full`,
    ),
    ...(reasons.length === 0 ? ['nothing is wrong'] : reasons.map((reason) => `wrong: ${reason}`)),
  ]
}

const DAY_MS = 86_400_000

function claimCheckLines({ claimCheck }: BackendView): readonly string[] {
  if (claimCheck === undefined) return []
  const { blobs, aboveBytes, maxBytes, keepMs } = claimCheck
  return [
    '',
    `claim check: payloads above ${aboveBytes} bytes, up to ${maxBytes}, lie in ${blobs}`,
    `they are kept for ${Number((keepMs / DAY_MS).toFixed(1))} days after their message became ready`,
  ]
}
