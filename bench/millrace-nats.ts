import { nats } from 'millrace/nats'
import { type BrokerStore, brokerStore } from './broker-store.ts'

export function natsStore(servers: string, file: string): BrokerStore {
  return brokerStore(nats({ servers }), file)
}
