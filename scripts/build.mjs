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
  try {
    const args = [compiler, '-p', 'tsconfig.build.json', '--outDir', fresh]
    execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
    rmSync(join(root, 'dist'), { recursive: true, force: true })
    renameSync(fresh, join(root, 'dist'))
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
