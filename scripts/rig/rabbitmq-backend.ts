import { ask, placeOf } from './ask.ts'
import type { Backend } from './backend.ts'
import { RABBITMQ_COMMAND, startRabbitmq } from './rabbitmq-server.ts'

const VARIABLE = 'MILLRACE_TEST_RABBITMQ_URL'
const PROTOCOL_HEADER = Uint8Array.of(...Buffer.from('AMQP'), 0, 0, 9, 1)

/** A broker answers the protocol header of AMQP 0-9-1 with a frame. */
export async function rabbitmqAnswers(url: string): Promise<boolean> {
  const answer = await ask(placeOf(url, 5672), PROTOCOL_HEADER, (bytes) => bytes.length > 7)
  return answer !== undefined && answer[0] === 1
}

export const RABBITMQ_BACKEND: Backend = {
  name: 'rabbitmq',
  family: 'rabbitmq',
  variable: VARIABLE,
  command: RABBITMQ_COMMAND,
  answers: rabbitmqAnswers,
  start: async () => {
    const { url, managementUrl, version, stop } = await startRabbitmq()
    const env = { [VARIABLE]: url, MILLRACE_TEST_RABBITMQ_MANAGEMENT_URL: managementUrl }
    return { env, version, stop }
  },
}
