import { redis } from 'millrace/redis'
import { type BrokerStore, brokerStore } from './broker-store.ts'

export function redisStore(url: string): BrokerStore {
  return brokerStore(redis({ url }))
}
