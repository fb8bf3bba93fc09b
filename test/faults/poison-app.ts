import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { type App, type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { rabbitmq } from 'millrace/rabbitmq'
import { sqs } from 'millrace/sqs'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'

/** Where the poison works; travels to the child processes as JSON. */
export interface Place {
  readonly kind: 'quorum' | 'classic' | 'standard' | 'fifo' | 'hold' | 'park'
  readonly url: string
  /** Names the queue, so that no two runs share one. */
  readonly run: string
  readonly storeFile: string
  readonly recordFile: string
}

export const POISON = 17
export const COUNT = 50

export function queueOf({ run }: Place) {
  return defineQueue({
    name: `poison-${run}`,
    owner: 'team-chaos',
    payload: z.object({ n: z.number() }),
    handlerTimeoutMs: 1_000,
    retry: { attempts: 8, baseMs: 50, maxMs: 200 },
    capacity: 'unbounded',
  })
}

export function connectorOf({ kind, url }: Place): Connector {
  switch (kind) {
    case 'quorum':
    case 'classic':
      return rabbitmq({ url, queueType: kind, timeoutMs: 5_000 })
    case 'standard':
    case 'fifo':
      return sqs({
        ...{ endpoint: url, kind, region: 'us-east-1' },
        credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      })
    case 'hold':
    case 'park':
      return kafka({
        ...{ brokers: url, retry: kind, partitions: 3 },
        ...{ sessionTimeoutMs: 1_500, heartbeatMs: 100, revokeDrainMs: 100 },
      })
  }
}

export function appOn(place: Place): Promise<App<unknown>> {
  return createMillrace({
    transport: connectorOf(place),
    store: sqliteStore({ file: place.storeFile }),
    queues: [queueOf(place)],
    logger: silentLogger,
  }) as Promise<App<unknown>>
}

/** A line each, outside the library; what a killed process wrote is there. */
export function note({ recordFile }: Place, word: string, n: number): void {
  appendFileSync(recordFile, `${word} ${n}\n`)
}

export function noted({ recordFile }: Place, word: string): readonly number[] {
  if (!existsSync(recordFile)) return []
  const lines = readFileSync(recordFile, 'utf8').split('\n')
  return lines.flatMap((line) => (line.startsWith(`${word} `) ? [Number(line.split(' ')[1])] : []))
}
