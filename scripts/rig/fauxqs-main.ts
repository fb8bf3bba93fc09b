// Serves fauxqs on loopback: its own program listens on all interfaces.
//   node fauxqs-main.ts FOLDER PORT
import { join } from 'node:path'

const [folder = '', port = ''] = process.argv.slice(2)

interface Store {
  host: string
}

interface App {
  listen(at: { readonly host: string; readonly port: number }): Promise<unknown>
}

interface Options {
  readonly logger: boolean
  readonly stores: { readonly sqsStore: Store }
}

const { buildApp }: { buildApp(options: Options): App } = await import(join(folder, 'app.js'))
const { SqsStore }: { SqsStore: new () => Store } = await import(join(folder, 'sqs/sqsStore.js'))
const sqsStore = new SqsStore()
// Queue URLs name the address that the client used; sqs.REGION.localhost does not resolve everywhere.
sqsStore.host = ''
await buildApp({ logger: false, stores: { sqsStore } }).listen({
  host: '127.0.0.1',
  port: Number(port),
})
