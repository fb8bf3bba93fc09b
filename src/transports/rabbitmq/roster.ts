import type { AmqpChannel } from './amqp-shapes.ts'
import type { Attached } from './attachment.ts'

/** One channel on the roster of a queue: while it is on, this subscription counts as one that asks. */
export interface RosterConsumer extends Attached {
  isOn(): boolean
  start(): Promise<void>
  /** How many ask, on all machines. */
  count(): Promise<number>
}

export function openRosterConsumer(
  channel: AmqpChannel,
  roster: string,
  onCancelled: () => void,
): RosterConsumer {
  let started: Promise<void> | undefined
  const start = async (): Promise<void> => {
    await channel.consume(roster, (message) => {
      if (message === null) onCancelled()
    })
  }
  return {
    isOn: () => started !== undefined,
    start() {
      started ??= start()
      return started
    },
    count: async () => (await channel.checkQueue(roster)).consumerCount,
    lose() {},
    async close() {
      await channel.close()
    },
  }
}
