import { ask } from './ask.ts'

const METADATA = 3

/** How many brokers this one (`host:port`) knows; undefined when it does not answer. */
export async function knownBrokers(broker: string): Promise<number | undefined> {
  const [host = '', port = ''] = broker.split(':')
  // Length, then the answer: our number for the request, and the brokers, beginning with their count.
  const answer = await ask(
    { host, port: Number(port) },
    metadataRequest(),
    (said) => said.length >= 12,
  )
  return answer?.readInt32BE(8)
}

/** A broker that knows none, itself included, is still starting. */
export async function kafkaAnswers(broker: string): Promise<boolean> {
  return ((await knownBrokers(broker)) ?? 0) > 0
}

/** Version 1, about no topic, without a client's name. */
function metadataRequest(): Buffer {
  const request = Buffer.alloc(18)
  request.writeInt32BE(14, 0)
  request.writeInt16BE(METADATA, 4)
  request.writeInt16BE(1, 6)
  request.writeInt32BE(1, 8)
  request.writeInt16BE(-1, 12)
  request.writeInt32BE(0, 14)
  return request
}
