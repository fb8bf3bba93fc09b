import { kafka } from 'millrace/kafka'
import { type BrokerStore, brokerStore } from './broker-store.ts'

export function kafkaStore(brokers: string, file: string): BrokerStore {
  return brokerStore(kafka({ brokers: brokers.split(','), retry: 'park' }), file)
}
