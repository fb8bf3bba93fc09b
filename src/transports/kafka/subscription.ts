import { closedError } from '../../model/closed-error.ts'
import type { Acked, Delivery, LanePosition, Settled, Settlement } from '../../model/delivery.ts'
import { untilEnded } from '../../transport/ends.ts'
import { lost } from '../../transport/outcomes.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import type { Cluster } from './client.ts'
import { type Consumer, startConsumer } from './consumer.ts'
import type { Lane } from './lane.ts'
import { receiptOf } from './records.ts'

export interface Opened extends Subscription {
  /** See `Transport.problems`. */
  readonly problems: () => readonly string[]
}

/** One consumer of a topic in its group. */
export async function kafkaSubscription(
  cluster: Cluster,
  queue: string,
  onClose: () => void,
): Promise<Opened> {
  const consumer = await startConsumer(cluster, queue)
  const { bell, closed, commit, fetcher, member, paused } = consumer
  const take = takeInTurn(consumer)
  const receive = async ({ max, waitMs, signal }: ReceiveOptions): Promise<readonly Delivery[]> => {
    if (closed.aborted) throw closedError('the subscription')
    return untilEnded([signal, closed], async (ends) => {
      const until = cluster.clock.now() + waitMs
      for (;;) {
        if (ends.reached()) return []
        const rings = bell.rings('lanes')
        const taken = take(max)
        const leftMs = until - cluster.clock.now()
        if (taken.length > 0 || leftMs <= 0) return taken
        await bell.wait('lanes', rings, leftMs, ends.signal())
      }
    })
  }
  const goal = goals()
  const settleOne = async (one: Settlement): Promise<Settled> => {
    if (one.as !== 'acked') return invalid
    const receipt = receiptOf(one.delivery)
    if (receipt === undefined || receipt.isAcked || receipt.lane.claim.lost.aborted) return lost
    const outcome = await commit(receipt.lane, goal(receipt.lane, one))
    if (!outcome.ok) return outcome
    if (receipt.isAcked) return lost
    receipt.isAcked = true
    return outcome
  }
  return {
    receive,
    settle: (batch) => Promise.all(batch.map(settleOne)),
    pauseLane: (name, isPaused) => {
      if (isPaused) paused.add(name)
      else paused.delete(name)
      if (isPaused) return
      fetcher.look()
      bell.ring()
    },
    resize: () => {},
    problems: () => {
      const joining = member.problem()
      return [...(joining === undefined ? [] : [joining]), ...fetcher.problems()]
    },
    close: async () => {
      await consumer.close()
      // A close of the transport meanwhile waits for it, too: it needs the connections.
      onClose()
    },
  }
}

/** Each time it begins with another lane: else the first ones would be all that is handed out, as long as they have something. */
function takeInTurn({ lanes, fetcher, paused }: Consumer): (max: number) => readonly Delivery[] {
  let turn = 0
  return (max) => {
    const taken: Delivery[] = []
    const all = [...lanes.all()]
    for (let n = 0; n < all.length && taken.length < max; n += 1) {
      const lane = all[(turn + n) % all.length]
      if (lane === undefined || lane.isEnding || paused.has(lane.name)) continue
      const some = lane.buffer.take(max - taken.length)
      const last = some.at(-1)
      if (last?.position !== undefined) lane.handedTo = last.position + 1n
      taken.push(...some)
    }
    turn += 1
    if (taken.length > 0) fetcher.look()
    return taken
  }
}

/** Without a position of its own, an ack says that everything up to it is done. */
function goals(): (lane: Lane, acked: Acked) => LanePosition {
  const furthest = new WeakMap<Lane, bigint>()
  return (lane, { delivery, upTo }) => {
    if (upTo !== undefined) return upTo
    const before = furthest.get(lane) ?? lane.committed
    const next = (delivery.position ?? -1n) + 1n
    const position = next > before ? next : before
    furthest.set(lane, position)
    return { position, note: '' }
  }
}

const invalid: Settled = {
  ok: false,
  fault: { code: 'invalid', retryable: false, outcome: 'notApplied' },
}
