// Compiles src/ to dist/, on whatever Node is at hand. Runs on npm ci (as `dependencies`) and before npm pack (as
// `prepack`). Not as `prepare`: npm 11 warns whoever installs a tarball with that one.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')

if (!existsSync(compiler)) {
  console.log('millrace: typescript is not installed, dist/ is not rebuilt')
} else {
  // Beside dist/ first: who uses the old one meanwhile finds it whole.
  const fresh = mkdtempSync(join(root, '.dist-'))
  const old = `${fresh}-old`
  const dist = join(root, 'dist')
  try {
    const args = [compiler, '-p', 'tsconfig.build.json', '--outDir', fresh]
    execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
    // Two renames: who loads one file after the other meanwhile misses none, which to remove it would take too long for.
    if (existsSync(dist)) renameSync(dist, old)
    renameSync(fresh, dist)
  } finally {
    for (const left of [fresh, old]) rmSync(left, { recursive: true, force: true })
  }
}
