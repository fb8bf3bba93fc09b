import type { RedisClientLike } from './client-shapes.ts'

interface Heard extends RedisClientLike {
  on(event: string, hear: (value: unknown) => void): unknown
  off(event: string, hear: (value: unknown) => void): unknown
}

/** Resolves once commands can be sent; rejects with what an attempt to connect failed on. The caller limits the time. */
export function untilReady(client: Heard): Promise<void> {
  if (client.isReady) return Promise.resolve()
  if (!client.isOpen) {
    return Promise.reject(new Error('the client is closed, or was never connected'))
  }
  return new Promise((resolve, reject) => {
    const end = (): void => {
      for (const [event, hear] of heard) client.off(event, hear)
    }
    const heard: readonly (readonly [string, (value: unknown) => void])[] = [
      [
        'ready',
        () => {
          end()
          resolve()
        },
      ],
      [
        'error',
        (error) => {
          end()
          reject(error)
        },
      ],
      [
        'end',
        () => {
          end()
          reject(new Error('the client was closed'))
        },
      ],
    ]
    for (const [event, hear] of heard) client.on(event, hear)
  })
}
