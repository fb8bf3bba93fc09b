import { defineConfig, defineWorker } from 'millrace'
import { backendAt } from './backend.ts'
import { deliver, deliveries } from './deliveries.ts'

const { WEBHOOK_TRANSPORT: address, WEBHOOK_FILE: file = 'millrace.db' } = process.env

/** Used by main.ts and by the command line, so that both mean the same backend and queues. */
export default defineConfig({
  ...backendAt(address, file),
  queues: [deliveries],
  workers: [defineWorker(deliveries, deliver, { concurrency: 20 })],
})
