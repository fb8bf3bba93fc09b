import '../../model/node-version.ts'

export { type PolicyOptions, type PolicyStatement, type SqsPolicy, sqsPolicy } from './policy.ts'
export { type SqsOptions, sqs } from './sqs.ts'
