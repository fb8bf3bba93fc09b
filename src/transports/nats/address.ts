import type { ConnectionOptions } from '@nats-io/transport-node'

/** What the client's `connect` is told of the addresses. */
export type Addressed = Pick<ConnectionOptions, 'servers' | 'user' | 'pass' | 'token' | 'tls'>

/**
 * The client ignores user and password in an address (3.4 answers "Authorization Violation"), and people write them there. The
 * first that is found counts for all, because a cluster has one set of users; a user without a password is a token.
 */
export function addressed(servers: string | readonly string[]): Addressed {
  const all = typeof servers === 'string' ? [servers] : servers
  const urls = all.map((server) => new URL(server.includes('://') ? server : `nats://${server}`))
  const named = urls.find(({ username }) => username !== '')
  const hosts = urls.map(({ protocol, host }) => `${protocol}//${host}`)
  // Without this the client speaks TLS only where the server insists on it.
  const tls = urls.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}
  if (named === undefined) return { servers: hosts, ...tls }
  const user = decodeURIComponent(named.username)
  if (named.password === '') return { servers: hosts, token: user, ...tls }
  return { servers: hosts, user, pass: decodeURIComponent(named.password), ...tls }
}
