import { link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { OptionsError } from '../model/errors.ts'
import { read } from '../model/probe.ts'

/**
 * The folder of file blobs. A disk that is not mounted leaves an empty folder in its place, or none: a body that is missing there is
 * not gone, and one that is written there is lost when the disk is back. So the folder has a mark of its own, made with its first
 * body, and each process remembers the one that it has seen.
 */
export interface BlobFolder {
  /** @throws when it is not there, or is another one than before. Makes it with its mark when this process has never seen it. */
  toWrite(name: string): Promise<void>
  /** @throws when a body that is missing may lie in the folder that was here before. */
  toMiss(): Promise<void>
  /** What lies in it; nothing while it is not there. @throws when it is another one than before */
  shards(): Promise<readonly string[]>
}

/** In it is the name of the first body, which no other folder has; nothing in that of a folder which is older than marks are. */
export const MARK = '.millrace-blobs'

export function blobFolder(folder: string): BlobFolder {
  let known: string | undefined

  const away = (what: string): Error =>
    new Error(`${what}; is its disk mounted? Bodies wait there until it is back`)

  const compared = (mark: string | undefined): string | undefined => {
    if (mark === undefined && known !== undefined)
      throw away(`folder ${folder} has lost its file ${MARK}`)
    known ??= mark
    if (known !== mark) throw away(`folder ${folder} is another one than it was`)
    return mark
  }
  const markOf = (): Promise<string | undefined> =>
    orWhenMissing(undefined, readFile(join(folder, MARK), 'utf8'))
  /** One that holds bodies and has no mark was made before there were marks. */
  const look = async (): Promise<string | undefined> => {
    const mark = await markOf()
    if (mark !== undefined || known !== undefined) return compared(mark)
    if ((await shardsIn(folder)).length === 0) return undefined
    await makeMark(folder, '')
    return compared(await markOf())
  }

  return {
    async toWrite(name) {
      if ((await look()) !== undefined) return
      await makeFolder(folder)
      await makeMark(folder, name)
      await look()
    },
    async toMiss() {
      if (!(await isFolder(folder))) throw away(`there is no folder ${folder}`)
      if ((await look()) === undefined) throw away(`folder ${folder} is empty`)
    },
    async shards() {
      if (!(await isFolder(folder))) return []
      compared(await markOf())
      return shardsIn(folder)
    },
  }
}

async function shardsIn(folder: string): Promise<readonly string[]> {
  const all = await orWhenMissing([], readdir(folder))
  return all.filter((one) => !one.startsWith(MARK))
}

/** Of several processes, one makes it; it is there whole or not at all. */
async function makeMark(folder: string, text: string): Promise<void> {
  const mark = join(folder, MARK)
  const part = `${mark}.${text}.part`
  const file = await open(part, 'w')
  try {
    await file.writeFile(`${text}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  // Some file systems of networks know no links.
  await link(part, mark).catch(async () => {
    if ((await orWhenMissing(undefined, stat(mark))) === undefined) await rename(part, mark)
  })
  await rm(part, { force: true })
  await syncFolder(folder)
}

/** A folder is safe when the one that it stands in was synced. */
export async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true })
  if (first !== undefined) await syncFolder(join(first, '..'))
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** @throws MILLRACE_INVALID_OPTIONS when something else is in its place */
async function isFolder(path: string): Promise<boolean> {
  const found = await orWhenMissing(undefined, stat(path))
  if (found === undefined || found.isDirectory()) return found !== undefined
  throw new OptionsError('fileBlobs', [`folder: ${path} is there, but it is not a folder`])
}

/** A file in the place of a shard is none of ours. */
export async function orWhenMissing<T, E>(missing: E, reading: Promise<T>): Promise<T | E> {
  try {
    return await reading
  } catch (error) {
    const code: unknown = read(error, 'code')
    if (code === 'ENOENT' || code === 'ENOTDIR') return missing
    throw error
  }
}
