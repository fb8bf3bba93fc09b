import type { S3Client } from '@aws-sdk/client-s3'
import { readString } from '../model/probe.ts'

/** The actions of S3 that we use; all may be repeated. */
export interface S3Calls {
  put(key: string, body: Uint8Array, signal: AbortSignal): Promise<void>
  /** Undefined when there is none; a missing bucket is an error. */
  get(key: string, signal: AbortSignal): Promise<Uint8Array | undefined>
  remove(keys: readonly string[], signal: AbortSignal): Promise<void>
  page(options: PageOptions, signal: AbortSignal): Promise<Page>
}

export interface PageOptions {
  readonly prefix: string
  /** Of the page before; undefined for the first one. */
  readonly next: string | undefined
  readonly max: number
}

export interface Page {
  /** In order, at most `max`. */
  readonly keys: readonly string[]
  /** Undefined at the end. */
  readonly next: string | undefined
}

/** Of one request, for listing and for removing. */
const KEYS_MAX = 1_000

export function s3Calls(
  sdk: typeof import('@aws-sdk/client-s3'),
  client: S3Client,
  Bucket: string,
): S3Calls {
  return {
    put: async (Key, Body, abortSignal) => {
      await client.send(new sdk.PutObjectCommand({ Bucket, Key, Body }), { abortSignal })
    },
    get: async (Key, abortSignal) => {
      try {
        const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket, Key }), {
          abortSignal,
        })
        return (await Body?.transformToByteArray()) ?? new Uint8Array()
      } catch (error) {
        if (readString(error, 'name') === 'NoSuchKey') return undefined
        throw error
      }
    },
    remove: async (keys, abortSignal) => {
      for (let i = 0; i < keys.length; i += KEYS_MAX) {
        const Objects = keys.slice(i, i + KEYS_MAX).map((Key) => ({ Key }))
        const command = new sdk.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } })
        const { Errors = [] } = await client.send(command, { abortSignal })
        const [first] = Errors.filter(({ Code }) => Code !== 'NoSuchKey')
        if (first !== undefined) {
          throw new Error(
            `S3 removed not all of ${Objects.length} objects: ${first.Code} of ${first.Key} (${first.Message})`,
          )
        }
      }
    },
    page: async ({ prefix, next, max }, abortSignal) => {
      const command = new sdk.ListObjectsV2Command({
        Bucket,
        Prefix: prefix,
        ContinuationToken: next,
        MaxKeys: Math.min(max, KEYS_MAX),
      })
      const { Contents = [], NextContinuationToken } = await client.send(command, { abortSignal })
      const keys = Contents.flatMap(({ Key }) => (Key === undefined ? [] : [Key]))
      return { keys, next: NextContinuationToken }
    },
  }
}
