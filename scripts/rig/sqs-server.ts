import type { Backend } from './backend.ts'
import type { PrivateServer } from './private-server.ts'

/** A stand-in for SQS. It keeps its messages in memory: after a halt they are gone. */
export interface SqsServer extends PrivateServer {
  readonly url: string
  readonly port: number
  readonly version: string
}

/** ListQueues, unsigned: both stand-ins take any signature. A refusal in the words of SQS is an answer, too. */
export async function sqsAnswers(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      body: '{}',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'AmazonSQS.ListQueues',
      },
      signal: AbortSignal.timeout(2_000),
    })
    const said = await answer.text()
    return answer.ok || said.includes('__type')
  } catch {
    return false
  }
}

export function sqsBackend(
  name: string,
  variable: string,
  command: string,
  start: () => Promise<SqsServer>,
): Backend {
  return {
    name,
    family: 'sqs',
    variable,
    command,
    answers: sqsAnswers,
    start: async () => {
      const { url, version, stop } = await start()
      return { env: { [variable]: url }, version, stop }
    },
  }
}
