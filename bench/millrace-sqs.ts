import { sqs } from 'millrace/sqs'
import { type BrokerStore, brokerStore } from './broker-store.ts'
import { SQS_ACCOUNT } from './sqs-account.ts'

export function sqsStore(endpoint: string, file: string): BrokerStore {
  return brokerStore(sqs({ ...SQS_ACCOUNT, endpoint }), file)
}
