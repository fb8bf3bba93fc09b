import { BLOB_MAX_BYTES, type BlobStore } from './blob-store.ts'

/** Blobs that live as long as the process, for tests. */
export function memoryBlobs(options: { readonly maxBytes?: number } = {}): BlobStore {
  const kept = new Map<string, Uint8Array>()
  return {
    name: 'memory blobs',
    maxBytes: options.maxBytes ?? BLOB_MAX_BYTES,
    put: async (name, body) => void kept.set(name, body.slice()),
    get: async (name) => kept.get(name)?.slice(),
    remove: async (names) => {
      for (const name of names) kept.delete(name)
    },
    list: async ({ before, max }) =>
      [...kept.keys()]
        .filter((name) => name < before)
        .sort()
        .slice(0, max),
  }
}
