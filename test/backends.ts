import { test } from 'node:test'

/** Servers that the rig provides, and the variable that names each one's address. */
const VARIABLES = {
  postgres: 'MILLRACE_TEST_POSTGRES_URL',
  'postgres 18': 'MILLRACE_TEST_POSTGRES_18_URL',
  'postgres 13': 'MILLRACE_TEST_POSTGRES_13_URL',
  pgbouncer: 'MILLRACE_TEST_PGBOUNCER_URL',
  'redis 7': 'MILLRACE_TEST_REDIS_7_URL',
  'redis 6.2': 'MILLRACE_TEST_REDIS_62_URL',
  valkey: 'MILLRACE_TEST_VALKEY_URL',
  'redis cluster': 'MILLRACE_TEST_REDIS_CLUSTER_URLS',
  nats: 'MILLRACE_TEST_NATS_URL',
  rabbitmq: 'MILLRACE_TEST_RABBITMQ_URL',
  'sqs elasticmq': 'MILLRACE_TEST_SQS_ELASTICMQ_URL',
  'sqs fauxqs': 'MILLRACE_TEST_SQS_FAUXQS_URL',
  kafka: 'MILLRACE_TEST_KAFKA_BROKERS',
} as const

export type BackendName = keyof typeof VARIABLES

/**
 * The address of a server, for the tests of one file. Undefined at home when there is none: then this file's tests are
 * reported as one skipped test with the reason. Throws where every backend is required.
 */
export function backendUrl(name: BackendName): string | undefined {
  const given = process.env.MILLRACE_TEST_POSTGRES_URL
  // Somebody's own server stands for whichever version it is.
  const url = process.env[VARIABLES[name]] ?? (name === 'postgres 18' ? given : undefined)
  if (url !== undefined) return url
  const reason = `${name} is not available: ${why(name)}`
  if (process.env.MILLRACE_REQUIRE === 'all') throw new Error(reason)
  test(`tests on ${name}`, { skip: reason }, () => {})
  return undefined
}

interface Report {
  readonly name: string
  readonly why?: string
}

function why(name: BackendName): string {
  const reported = process.env.MILLRACE_TEST_BACKENDS
  if (reported === undefined) return 'run it through npm test'
  const reports: readonly Report[] = JSON.parse(reported)
  return reports.find((report) => report.name === name)?.why ?? 'the rig did not start it'
}
