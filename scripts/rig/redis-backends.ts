import type { Backend } from './backend.ts'
import { type RedisKind, redisCommand } from './redis-binaries.ts'
import { REDIS_CLUSTER_BACKEND } from './redis-cluster.ts'
import { redisAnswers, startRedis } from './redis-server.ts'

const alone = (kind: RedisKind, variable: string) => ({
  name: kind,
  family: 'redis' as const,
  variable,
  command: redisCommand(kind),
  answers: redisAnswers,
  start: async () => {
    const { url, version, stop } = await startRedis(kind)
    return { env: { [variable]: url }, version, stop }
  },
})

export const REDIS_BACKENDS: readonly Backend[] = [
  alone('redis 7', 'MILLRACE_TEST_REDIS_7_URL'),
  { ...alone('redis 6.2', 'MILLRACE_TEST_REDIS_62_URL'), further: true },
  { ...alone('valkey', 'MILLRACE_TEST_VALKEY_URL'), further: true },
  { ...REDIS_CLUSTER_BACKEND, further: true },
]
