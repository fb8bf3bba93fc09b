import { sqlite } from 'millrace/sqlite'
import type { Clock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Transport } from '../../src/transport/transport.ts'

const signal = new AbortController().signal

/** A connection to the file as a process of its own opens it, with a queue `q`. */
export async function connect(file: string, clock: Clock): Promise<Transport> {
  const transport = await sqlite({ file }).connect({
    signal,
    clock,
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
  await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  return transport
}
