import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { cached } from './cache.ts'
import { run, which } from './command.ts'

export interface JavaProgram {
  readonly java: string
  /** For `-cp`. */
  readonly classPath: string
  /** The version of the artifact that was asked for. */
  readonly version: string
}

const FETCH_MS = 600_000

export const JAVA_COMMAND = 'apt-get install default-jre-headless maven'

/** All jars that `maven/NAME.xml` needs at run time, fetched once; `artifact` is the one that gives its version. */
export async function javaProgram(name: string, artifact: string): Promise<JavaProgram> {
  const java = await which('java', ['/usr/bin'])
  if (java === undefined) throw new Error('java is not on PATH')
  const manifest = join(import.meta.dirname, 'maven', `${name}.xml`)
  const folder = await cached(`maven-${name}`, (jars) => fetchJars(manifest, jars))
  const jar = new RegExp(`^${artifact}-(\\d[\\w.]*)\\.jar$`)
  const version = readdirSync(folder).flatMap((file) => jar.exec(file)?.[1] ?? [])[0]
  if (version === undefined) throw new Error(`${folder} has no ${artifact}: remove that folder`)
  return { java, classPath: join(folder, '*'), version }
}

async function fetchJars(manifest: string, folder: string): Promise<void> {
  const mvn = await which('mvn', ['/usr/bin'])
  if (mvn === undefined) throw new Error('mvn is not on PATH')
  const where = [`-DoutputDirectory=${folder}`, '-DincludeScope=runtime']
  const goal = ['-q', '-B', '-f', manifest, 'dependency:copy-dependencies', ...where]
  await run(mvn, goal, { timeoutMs: FETCH_MS })
}
