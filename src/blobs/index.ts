import '../model/node-version.ts'

export type { BlobListOptions, BlobStore } from './blob-store.ts'
export { type FileBlobsOptions, fileBlobs } from './file-blobs.ts'
export { memoryBlobs } from './memory-blobs.ts'
export {
  type S3BlobsOptions,
  type S3ClientLike,
  type S3Credentials,
  s3Blobs,
} from './s3-blobs.ts'
