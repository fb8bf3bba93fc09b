import { rabbitmq } from 'millrace/rabbitmq'
import { type BrokerStore, brokerStore } from './broker-store.ts'

export function rabbitmqStore(url: string, file: string): BrokerStore {
  return brokerStore(rabbitmq({ url }), file)
}
