import type { S3Client } from '@aws-sdk/client-s3'
import { MillraceError } from '../model/errors.ts'
import { read } from '../model/probe.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import { BLOB_MAX_BYTES, type BlobStore, isBlobName } from './blob-store.ts'
import { type S3Calls, s3Calls } from './s3-calls.ts'

export interface S3BlobsOptions {
  /** A general purpose bucket; it is not made. */
  readonly bucket: string
  /** Before the names, for these blobs alone: empty, or a path that ends in `/`. Default `millrace-blobs/`. */
  readonly prefix?: string
  /** Default: where the SDK finds one (AWS_REGION, the profile). */
  readonly region?: string
  /** Another server that speaks S3; buckets are part of its paths then. A VPC endpoint, too. */
  readonly endpoint?: string
  /** Default: the SDK's chain (environment, profile, container, instance). */
  readonly credentials?: S3Credentials | (() => Promise<S3Credentials>)
  /** An S3Client of yours, instead of region, endpoint and credentials; it stays open. */
  readonly client?: S3ClientLike
  /** The largest body, in bytes, up to 5,368,709,120 (what S3 takes at once). Default 67,108,864 (64 MiB). */
  readonly maxBytes?: number
}

/** Keys as the SDK takes them; written out, so that whoever keeps blobs as files needs no types of the SDK. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/** What an `S3Client` looks like. */
export interface S3ClientLike {
  send(command: never, options: { readonly abortSignal: AbortSignal }): Promise<unknown>
}

interface Resolved extends S3BlobsOptions {
  readonly prefix: string
  readonly maxBytes: number
}

/**
 * Blobs as objects of S3, or of a server that speaks it. Needs the package `@aws-sdk/client-s3`. An object is there whole or not
 * at all, whatever is cut off. The account must be allowed to list: without that right S3 does not tell a missing object from a
 * forbidden one.
 *
 * @example
 * const app = await createMillrace({ transport, queues, claimCheck: { blobs: s3Blobs({ bucket: 'shop', region: 'eu-west-1' }) } })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function s3Blobs(options: S3BlobsOptions): BlobStore {
  const resolved = resolve(options)
  const { bucket, prefix, maxBytes } = resolved
  let opening: Promise<S3Calls> | undefined
  const opened = (): Promise<S3Calls> => {
    opening ??= open(resolved)
    opening.catch(() => {
      opening = undefined
    })
    return opening
  }
  const keyOf = (name: string): string => {
    if (!isBlobName(name)) throw new Error(`${show(name)} cannot be the name of a blob`)
    return `${prefix}${name}`
  }
  return {
    name: `s3://${bucket}/${prefix}`,
    maxBytes,
    put: async (name, body, signal) => (await opened()).put(keyOf(name), body, signal),
    get: async (name, signal) => (await opened()).get(keyOf(name), signal),
    remove: async (names, signal) => (await opened()).remove(names.map(keyOf), signal),
    list: async ({ before, max }, signal) =>
      listed(await opened(), { prefix, before, max }, signal),
  }
}

/** What lies there and is none of ours must not make a sweep endless. */
const PAGES_MAX = 100

interface Wanted {
  readonly prefix: string
  readonly before: string
  readonly max: number
}

async function listed(
  calls: S3Calls,
  { prefix, before, max }: Wanted,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = []
  let next: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const got = await calls.page({ prefix, next, max: max - found.length }, signal)
    const names = got.keys.map((key) => key.slice(prefix.length))
    const early = names.filter((name) => name < before)
    found.push(...early.filter(isBlobName))
    next = got.next
    if (next === undefined || found.length >= max || early.length < names.length) break
  }
  return found
}

const CONNECT_TIMEOUT_MS = 10_000

async function open(options: Resolved): Promise<S3Calls> {
  const sdk = await loadSdk()
  const { client: given, region, endpoint, credentials } = options
  const client =
    given !== undefined && isClient(given)
      ? given
      : new sdk.S3Client({
          requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS },
          ...(region === undefined ? {} : { region }),
          // Names of buckets under an address of one's own rarely resolve.
          ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
          ...(credentials === undefined ? {} : { credentials }),
        })
  return s3Calls(sdk, client, options.bucket)
}

async function loadSdk(): Promise<typeof import('@aws-sdk/client-s3')> {
  try {
    return await import('@aws-sdk/client-s3')
  } catch (error) {
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      's3Blobs needs the package @aws-sdk/client-s3; run `npm install @aws-sdk/client-s3`',
      { cause: error },
    )
  }
}

const KNOWN = ['bucket', 'prefix', 'region', 'endpoint', 'credentials', 'client', 'maxBytes']
const BUCKET = /^([\w.-]{3,255}|arn:[\w-]+:s3[\w-]*:.+)$/
const PREFIX = 'millrace-blobs/'
/** Keys of S3 have 1,024 bytes, and names of blobs up to 200. */
const PREFIX_MAX = 800
const MAX_BYTES = { min: 1, max: 5_368_709_120, default: BLOB_MAX_BYTES } as const

function resolve(options: S3BlobsOptions): Resolved {
  const found = problems('s3Blobs')
  found.knownKeys(options, KNOWN)
  const { bucket, prefix = PREFIX } = options
  if (typeof bucket !== 'string' || !BUCKET.test(bucket)) {
    found.add(
      `bucket: expected the name of a bucket, or the ARN of its access point, got ${show(bucket)}`,
    )
  } else if (bucket.endsWith('--x-s3')) {
    found.add(
      `bucket: ${show(bucket)} is a directory bucket, which lists in no order; take a general purpose one`,
    )
  }
  if (typeof prefix !== 'string' || !/^([^/].*\/)?$/.test(prefix) || prefix.length > PREFIX_MAX) {
    found.add(`prefix: expected '' or a path that ends in /, not in front, got ${show(prefix)}`)
  }
  checkClient(found, options)
  const maxBytes = found.number('maxBytes', options.maxBytes, MAX_BYTES)
  found.throwIfAny()
  return { ...options, prefix, maxBytes }
}

function checkClient(found: Problems, options: S3BlobsOptions): void {
  const { client, region, endpoint } = options
  if (client !== undefined) {
    if (!isClient(client)) {
      found.add(`client: expected an S3Client, got ${show(client)}`)
    }
    for (const name of ['region', 'endpoint', 'credentials'] as const) {
      if (options[name] !== undefined) {
        found.add(`${name}: the client has its own; give one or the other`)
      }
    }
  }
  if (region !== undefined && (typeof region !== 'string' || region === '')) {
    found.add(`region: expected a name such as eu-west-1, got ${show(region)}`)
  }
  // The address is not shown: it may hold a password.
  if (endpoint !== undefined && (typeof endpoint !== 'string' || !URL.canParse(endpoint))) {
    found.add('endpoint: expected an address such as https://s3.eu-west-1.amazonaws.com')
  }
}

function isClient(client: unknown): client is S3Client {
  return typeof read(client, 'send') === 'function'
}
