import { SQSClient } from '@aws-sdk/client-sqs'
import { account } from './sqs-harness.ts'
import type { SqsServer } from './sqs-servers.ts'

/** One call of the SDK, as its first middleware sees it. */
export interface Call {
  /** `SendMessageBatch`, `ReceiveMessage`, … */
  readonly action: string
  readonly input: Readonly<Record<string, unknown>>
}

/** Decides about a call: an error is thrown without asking the server, an output answered in its place, undefined goes on. */
export type Interference = (call: Call) => Error | { readonly output: object } | undefined

export interface WatchedClient {
  readonly client: SQSClient
  readonly calls: readonly Call[]
  /** Replaces the interference before. */
  interfere(how: Interference | undefined): void
}

/** A client of the user's that says what no stand-in says. */
export function watchedClient(server: SqsServer): WatchedClient {
  const client = new SQSClient({
    ...account,
    endpoint: server.url,
    useQueueUrlAsEndpoint: false,
    maxAttempts: 1,
  })
  const calls: Call[] = []
  let interference: Interference | undefined
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const action = String(context.commandName).replace(/Command$/, '')
      const call: Call = { action, input: { ...args.input } }
      calls.push(call)
      const answer = interference?.(call)
      if (answer instanceof Error) throw answer
      if (answer === undefined) return await next(args)
      return { response: {}, output: { $metadata: {}, ...answer.output } }
    },
    { step: 'initialize', name: 'interfere' },
  )
  return {
    client,
    calls,
    interfere(how) {
      interference = how
    },
  }
}

/** An error as the SDK throws it. */
export function sdkError(name: string, message: string, httpStatusCode = 400): Error {
  return Object.assign(new Error(message), {
    name,
    $metadata: { httpStatusCode },
    $fault: 'client',
  })
}

/** The answer of a batch in which every entry failed. */
export function allFailed(
  { input }: Call,
  Code: string,
  Message = Code,
): { readonly output: object } {
  const entries: unknown = input.Entries
  if (!Array.isArray(entries)) throw new Error('no batch')
  const Failed = entries.map(({ Id }: { Id: string }) => ({ Id, Code, Message, SenderFault: true }))
  return { output: { Successful: [], Failed } }
}
