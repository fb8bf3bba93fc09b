import { openRabbit, subscribe, take } from '../transports/rabbitmq-subjects.ts'

/** Takes ten messages of a queue, says so, and holds them until it is killed. */
const [url = '', queue = ''] = process.argv.slice(2)
const transport = await openRabbit({ url, delays: false })
await take(await subscribe(transport, queue, 10), 10)
console.log('held')
setInterval(() => {}, 60_000)
