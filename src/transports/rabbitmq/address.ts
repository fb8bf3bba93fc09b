import type { RabbitmqAddress } from './options.ts'

/** The vhost in the address, as AMQP reads it: none and an empty path are the default one. */
export function serverVhost({ url }: RabbitmqAddress): string {
  const first = typeof url === 'string' ? url : url?.[0]
  if (first === undefined) return '/'
  const path = new URL(first).pathname.slice(1)
  return path === '' ? '/' : decodeURIComponent(path)
}
