import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { OptionsError } from '../model/errors.ts'
import { read } from '../model/probe.ts'
import { show } from '../model/problems.ts'
import { blobFolder, orWhenMissing, syncFolder } from './blob-folder.ts'
import { BLOB_MAX_BYTES, type BlobStore, isBlobName } from './blob-store.ts'

export interface FileBlobsOptions {
  /** For these blobs alone; made when it is not there. All processes of the app must see the same one. */
  readonly folder: string
  /** The largest body, in bytes. Default 67,108,864 (64 MiB). */
  readonly maxBytes?: number
}

/** Names begin with their time in hex: these five characters change every three days. */
const SHARD_CHARS = 5
const PART = '.part'

/**
 * Blobs as files. Each is written beside its place, synced, renamed and its folder synced, so that a power cut leaves it whole
 * or not at all. What a crash left half written is swept with the others.
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function fileBlobs(options: FileBlobsOptions): BlobStore {
  const { folder, maxBytes } = checked(options)
  const place = blobFolder(folder)
  const pathOf = (name: string): string => {
    if (!isBlobName(name)) throw new Error(`${show(name)} cannot be the name of a blob`)
    return join(folder, name.slice(0, SHARD_CHARS), name)
  }
  return {
    name: `files in ${folder}`,
    maxBytes,
    put: async (name, body, signal) => {
      const path = pathOf(name)
      await place.toWrite(name)
      await makeShard(dirname(path))
      const file = await open(`${path}${PART}`, 'w')
      try {
        await file.writeFile(body, { signal })
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(`${path}${PART}`, path)
      await syncFolder(dirname(path))
    },
    get: async (name, signal) => {
      const body = await orWhenMissing(undefined, readFile(pathOf(name), { signal }))
      // Whoever has a name to ask for has it from a process that had the folder: what is missing because the folder is must not
      // pass for a blob that is gone, since that makes a dead letter at once.
      if (body === undefined) await place.toMiss()
      return body
    },
    remove: async (names) => {
      for (const name of names) await rm(pathOf(name), { force: true })
    },
    list: async ({ before, max }) => {
      const found: string[] = []
      const shards = await place.shards()
      for (const shard of shards.filter((one) => one <= before).sort()) {
        if (found.length >= max) break
        const names = await orWhenMissing([], readdir(join(folder, shard)))
        found.push(...names.filter((name) => name < before && isBlobName(name)).sort())
      }
      return found.slice(0, max)
    },
  }
}

function checked(options: FileBlobsOptions): Required<FileBlobsOptions> {
  const folder: unknown = read(options, 'folder')
  const maxBytes: unknown = read(options, 'maxBytes') ?? BLOB_MAX_BYTES
  if (typeof folder !== 'string' || folder === '') {
    throw new OptionsError('fileBlobs', [`folder: expected a path, got ${show(folder)}`])
  }
  if (typeof maxBytes !== 'number' || !Number.isSafeInteger(maxBytes) || maxBytes < 1) {
    throw new OptionsError('fileBlobs', [
      `maxBytes: expected a whole number from 1, got ${show(maxBytes)}`,
    ])
  }
  return { folder: resolve(folder), maxBytes }
}

/** Not the folder itself: that one is away when it is not there. */
async function makeShard(path: string): Promise<void> {
  const isNew = await mkdir(path).then(
    () => true,
    (error: unknown) => {
      if (read(error, 'code') !== 'EEXIST') throw error
      return false
    },
  )
  if (isNew) await syncFolder(dirname(path))
}
