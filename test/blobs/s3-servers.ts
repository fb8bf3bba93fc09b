import { S3Client } from '@aws-sdk/client-s3'
import { backendUrl } from '../backends.ts'
import { account } from '../transports/sqs-harness.ts'

/** A server that speaks S3. */
export interface S3Server {
  readonly name: string
  readonly url: string
}

/** The stand-in of the rig, which speaks S3 and SQS, and one of yours that takes the account `test`. */
export function s3Servers(): readonly S3Server[] {
  const fauxqs = backendUrl('sqs fauxqs')
  const { MILLRACE_TEST_S3_URL: given } = process.env
  return [
    ...(fauxqs ? [{ name: 'fauxqs', url: fauxqs }] : []),
    ...(given ? [{ name: 'MILLRACE_TEST_S3_URL', url: given }] : []),
  ]
}

/** A client that tries once. */
export function s3Client(endpoint: string, maxAttempts = 1): S3Client {
  return new S3Client({ ...account, endpoint, forcePathStyle: true, maxAttempts })
}
