export interface PolicyOptions {
  /** Physical names, or ARNs where a queue belongs elsewhere. */
  readonly queues: readonly string[]
  readonly region: string
  /** Twelve digits. */
  readonly account: string
  /** `aws`, `aws-cn`, `aws-us-gov`. Default `aws`. */
  readonly partition?: string
  /** As given to `sqs`. Default `create`. */
  readonly topology?: 'create' | 'check' | 'none'
}

export interface PolicyStatement {
  readonly Sid: string
  readonly Effect: 'Allow'
  readonly Action: readonly string[]
  readonly Resource: readonly string[]
}

/** An IAM policy document; `JSON.stringify` writes it. */
export interface SqsPolicy {
  readonly Version: '2012-10-17'
  readonly Statement: readonly PolicyStatement[]
}

/** What the role of an app that sends to and works on these queues must be allowed, and nothing else. Batches need no own rights. */
export function sqsPolicy(options: PolicyOptions): SqsPolicy {
  const { queues, region, account, partition = 'aws', topology = 'create' } = options
  const Resource = queues.map((queue) =>
    queue.startsWith('arn:') ? queue : `arn:${partition}:sqs:${region}:${account}:${queue}`,
  )
  const work: PolicyStatement = {
    Sid: 'MillraceWork',
    Effect: 'Allow',
    Action: [
      'sqs:GetQueueUrl',
      'sqs:GetQueueAttributes',
      'sqs:SendMessage',
      'sqs:ReceiveMessage',
      'sqs:ChangeMessageVisibility',
      'sqs:DeleteMessage',
    ],
    Resource,
  }
  const create: PolicyStatement = {
    Sid: 'MillraceCreate',
    Effect: 'Allow',
    Action: ['sqs:CreateQueue'],
    Resource,
  }
  return { Version: '2012-10-17', Statement: topology === 'create' ? [work, create] : [work] }
}
