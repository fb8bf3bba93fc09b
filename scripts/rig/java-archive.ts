import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cached } from './cache.ts'

const FILE = 'classes.jsa'

/**
 * Options of a JVM that loads its classes from an archive of an earlier run: Kafka then starts with 1 s of CPU instead of 3.
 * `record` runs the program once with the options that it is given, to the end. Without an archive it starts all the same.
 */
export async function archivedClasses(
  java: string,
  name: string,
  record: (options: readonly string[]) => Promise<void>,
): Promise<readonly string[]> {
  try {
    const folder = await cached(`${name}-classes-java-${versionOf(java)}`, async (made) => {
      // A JVM that cannot do it leaves an empty folder, and is not asked again.
      await record([`-XX:ArchiveClassesAtExit=${join(made, FILE)}`])
    })
    const file = join(folder, FILE)
    return existsSync(file) ? [`-XX:SharedArchiveFile=${file}`] : []
  } catch {
    return []
  }
}

/** A JVM takes no archive of another one. */
function versionOf(java: string): string {
  const release = join(dirname(realpathSync(java)), '..', 'release')
  const text = existsSync(release) ? readFileSync(release, 'utf8') : ''
  return /^JAVA_VERSION="([\w.+-]+)"/m.exec(text)?.[1] ?? 'unknown'
}
