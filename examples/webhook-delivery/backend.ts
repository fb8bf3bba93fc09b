import type { Connector } from 'millrace'
import { nats } from 'millrace/nats'
import { postgres } from 'millrace/postgres'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqlite } from 'millrace/sqlite'
import { type StoreConnector, sqliteStore } from 'millrace/store'

export interface Backend {
  readonly transport: Connector
  readonly store?: StoreConnector
}

/** The schemes of `--transport`, each with what it stands for. This is all that changes with the backend. */
const BACKENDS: Readonly<Record<string, (address: string, file: string) => Backend>> = {
  redis: (url) => ({ transport: redis({ url }) }),
  rediss: (url) => ({ transport: redis({ url }) }),
  postgres: (url) => ({ transport: postgres({ url }) }),
  postgresql: (url) => ({ transport: postgres({ url }) }),
  // Dead letters, long delays and keys are the store's here.
  amqp: (url, file) => ({ transport: rabbitmq({ url }), store: sqliteStore({ file }) }),
  amqps: (url, file) => ({ transport: rabbitmq({ url }), store: sqliteStore({ file }) }),
  nats: (servers, file) => ({ transport: nats({ servers }), store: sqliteStore({ file }) }),
  tls: (servers, file) => ({ transport: nats({ servers }), store: sqliteStore({ file }) }),
}

/** Undefined: everything in the SQLite file. */
export function backendAt(address: string | undefined, file: string): Backend {
  if (address === undefined || address === '') return { transport: sqlite({ file }) }
  const open = BACKENDS[schemeOf(address)]
  if (open === undefined) throw new Error(`no transport for ${JSON.stringify(schemeOf(address))}`)
  return open(address, file)
}

export function isKnownAddress(address: string): boolean {
  return URL.canParse(address) && Object.hasOwn(BACKENDS, schemeOf(address))
}

export function schemes(): readonly string[] {
  return Object.keys(BACKENDS)
}

/** To show: without user and password. */
export function shownAddress(address: string): string {
  const { protocol, host, pathname } = new URL(address)
  return `${protocol}//${host}${pathname}`
}

export function hasPassword(address: string): boolean {
  return new URL(address).password !== ''
}

function schemeOf(address: string): string {
  return address.slice(0, address.indexOf(':'))
}
