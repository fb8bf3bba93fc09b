import '../../model/node-version.ts'

export {
  type RedisAddress,
  type RedisNames,
  type RedisOptions,
  type RedisSettings,
  redis,
} from './redis.ts'
