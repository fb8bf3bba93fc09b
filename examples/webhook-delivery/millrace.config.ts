import { defineConfig, defineWorker } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { deliver, deliveries } from './deliveries.ts'

/** Used by main.ts and by the command line, so that both mean the same file and queues. */
export default defineConfig({
  transport: sqlite({ file: process.env['WEBHOOK_FILE'] ?? 'millrace.db' }),
  queues: [deliveries],
  workers: [defineWorker(deliveries, deliver, { concurrency: 20 })],
})
