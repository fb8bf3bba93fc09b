import type {
  BatchResultErrorEntry,
  ChangeMessageVisibilityBatchCommandInput,
  CreateQueueCommandInput,
  DeleteMessageBatchCommandInput,
  GetQueueAttributesCommandInput,
  GetQueueUrlCommandInput,
  Message,
  ReceiveMessageCommandInput,
  SendMessageBatchCommandInput,
  SQSClient,
} from '@aws-sdk/client-sqs'
import type { Clock } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import { sqsRefusal } from './refusal.ts'

export type Sdk = typeof import('@aws-sdk/client-sqs')

/** The actions of SQS that we use. Each ends in bounded time, and when one of its signals fires. */
export interface SqsApi {
  queueUrl(input: GetQueueUrlCommandInput, ends?: AbortSignal): Promise<string>
  createQueue(input: CreateQueueCommandInput, ends?: AbortSignal): Promise<string>
  attributes(
    input: GetQueueAttributesCommandInput,
    ends?: AbortSignal,
  ): Promise<Readonly<Record<string, string>>>
  /** Takes as long as it waits on top of a call's usual time. */
  receive(input: ReceiveMessageCommandInput): Promise<readonly Message[]>
  /** Batches answer the entries that failed. */
  send(input: SendMessageBatchCommandInput, ends: AbortSignal): Promise<Failures>
  remove(input: DeleteMessageBatchCommandInput, timeoutMs?: number): Promise<Failures>
  hide(input: ChangeMessageVisibilityBatchCommandInput, timeoutMs?: number): Promise<Failures>
}

/** By entry id. */
export type Failures = ReadonlyMap<string, BatchResultErrorEntry>

export interface ApiParts {
  readonly sdk: Sdk
  readonly client: SQSClient
  readonly clock: Clock
  readonly timeoutMs: number
  /** Ends every call: the transport has closed. */
  readonly ended: AbortSignal
}

type Run<T> = (abortSignal: AbortSignal) => Promise<T>

interface Calling {
  readonly action: string
  readonly queue: string | undefined
  /** Default: the usual limit of a call. */
  readonly ms?: number | undefined
  readonly ends?: AbortSignal | undefined
}

export function sqsApi({ sdk, client, clock, timeoutMs, ended }: ApiParts): SqsApi {
  const within = async <T>(call: Calling, run: Run<T>): Promise<T> => {
    const { ms = timeoutMs, ends } = call
    const signals = ends === undefined ? [ended] : [ended, ends]
    for (const signal of signals) signal.throwIfAborted()
    const limit = new AbortController()
    const cancel = clock.after(ms, () => limit.abort())
    try {
      return await run(AbortSignal.any([limit.signal, ...signals]))
    } catch (error) {
      throw limit.signal.aborted ? timedOut(ms, error) : (sqsRefusal(error, call) ?? error)
    } finally {
      cancel()
    }
  }
  return {
    queueUrl: (input, ends) =>
      within({ action: 'GetQueueUrl', queue: input.QueueName, ends }, async (abortSignal) =>
        needed((await client.send(new sdk.GetQueueUrlCommand(input), { abortSignal })).QueueUrl),
      ),
    createQueue: (input, ends) =>
      within({ action: 'CreateQueue', queue: input.QueueName, ends }, async (abortSignal) =>
        needed((await client.send(new sdk.CreateQueueCommand(input), { abortSignal })).QueueUrl),
      ),
    attributes: (input, ends) =>
      within({ action: 'GetQueueAttributes', queue: input.QueueUrl, ends }, async (abortSignal) => {
        const command = new sdk.GetQueueAttributesCommand(input)
        return (await client.send(command, { abortSignal })).Attributes ?? {}
      }),
    receive: (input) => {
      const ms = timeoutMs + (input.WaitTimeSeconds ?? 0) * 1_000
      const call = { action: 'ReceiveMessage', queue: input.QueueUrl, ms }
      return within(call, async (abortSignal) => {
        const command = new sdk.ReceiveMessageCommand(input)
        return (await client.send(command, { abortSignal })).Messages ?? []
      })
    },
    send: (input, ends) =>
      within({ action: 'SendMessageBatch', queue: input.QueueUrl, ends }, async (abortSignal) =>
        failures(await client.send(new sdk.SendMessageBatchCommand(input), { abortSignal })),
      ),
    remove: (input, ms) =>
      within({ action: 'DeleteMessageBatch', queue: input.QueueUrl, ms }, async (abortSignal) =>
        failures(await client.send(new sdk.DeleteMessageBatchCommand(input), { abortSignal })),
      ),
    hide: (input, ms) => {
      const call = { action: 'ChangeMessageVisibilityBatch', queue: input.QueueUrl, ms }
      return within(call, async (abortSignal) => {
        const command = new sdk.ChangeMessageVisibilityBatchCommand(input)
        return failures(await client.send(command, { abortSignal }))
      })
    },
  }
}

function failures(output: {
  readonly Failed?: readonly BatchResultErrorEntry[] | undefined
}): Failures {
  return new Map((output.Failed ?? []).map((entry) => [entry.Id ?? '', entry]))
}

function needed(url: string | undefined): string {
  if (url === undefined) throw new MillraceError('MILLRACE_BACKEND_FAULT', 'SQS named no queue URL')
  return url
}

function timedOut(ms: number, cause: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `SQS did not answer within ${ms} ms; whether the call had an effect is unknown`,
    { retryable: true, cause },
  )
}
