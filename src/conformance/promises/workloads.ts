import assert from 'node:assert/strict'
import { drawMishap, faulty } from '../../layers/faulty.ts'
import { systemClock } from '../../model/clock.ts'
import type { Transport } from '../../transport/transport.ts'
import type { Family } from '../promise.ts'
import type { Scope } from '../scope.ts'
import { totalQueue } from '../workloads/total-queue.ts'

interface Trouble {
  readonly vanishes: number
  readonly weaken: (transport: Transport) => Transport
}

async function judged(scope: Scope, { vanishes, weaken }: Trouble): Promise<void> {
  const messages = scope.depth === 'full' ? 5_000 : 200
  const history = await totalQueue(scope, {
    messages,
    producers: 3,
    consumers: 3,
    vanishes: scope.depth === 'full' ? 3 * vanishes : vanishes,
    weaken,
    withinMs: scope.depth === 'full' ? 600_000 : 60_000,
  })
  const { duplicates, ackedTwice, deliveredAfterAck, ...faults } = history.verdict()
  assert.deepEqual(faults, { lost: [], unknown: [] })
  // Where the death of a holder may undo its acks, those messages are duplicates like others.
  if (vanishes === 0 || scope.traits.acksMayBeUndone === undefined) {
    assert.deepEqual({ ackedTwice, deliveredAfterAck }, { ackedTwice: [], deliveredAfterAck: [] })
  }
  assert.equal(history.sent.size, messages)
  assert.ok(duplicates >= 0)
}

const sound = (transport: Transport): Transport => transport

function troubled(scope: Scope): (transport: Transport) => Transport {
  const { random, traits } = scope
  const rates = { rejected: 0.05, refused: 0.05, unanswered: 0.05, slow: 0.02 }
  // An assignment has no lease that would bring back what the answer to a receive lost; such a receive answers from memory.
  const isLeased = traits.claim.kind === 'lease'
  return faulty({
    random,
    clock: scope.harness.time ?? systemClock(),
    plan: ({ act }) => {
      const mishap = drawMishap({ random, rates })
      return mishap === 'unanswered' && act === 'receive' && !isLeased ? 'rejected' : mishap
    },
    slowMs: 20,
  })
}

export const workloads: Family = {
  name: 'workloads',
  promises: [
    {
      title: 'Producers and consumers at once lose nothing and ack nothing twice.',
      keep: (scope) => judged(scope, { vanishes: 0, weaken: sound }),
    },
    {
      title: 'Nothing is lost and nothing acked twice when consumers vanish with messages in hand.',
      keep: (scope) => judged(scope, { vanishes: 4, weaken: sound }),
    },
    {
      title:
        'Nothing is lost and nothing acked twice when any call may fail, with or without effect.',
      keep: (scope) => judged(scope, { vanishes: 2, weaken: troubled(scope) }),
    },
  ],
}
