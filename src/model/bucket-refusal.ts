import { MillraceError } from './errors.ts'
import { readString } from './probe.ts'

/**
 * That a bucket of S3 is not there; undefined for every other error. The server answered and the account was let in, so nobody need look there.
 * @param what whose bucket it is, `s3://shop/millrace-blobs/`
 */
export function bucketRefusal(error: unknown, what: string): MillraceError | undefined {
  if (readString(error, 'name') !== 'NoSuchBucket') return undefined
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `${what}: the bucket does not exist, or this account may not see it (NoSuchBucket); correct bucket, region or endpoint, or make the bucket: Millrace makes none`,
    { cause: error, retryable: false },
  )
}
