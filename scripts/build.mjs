// Compiles src/ to dist/. Runs on npm ci and before npm pack, on whatever Node is at hand.
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
if (!existsSync(`${root}/node_modules/typescript`)) {
  console.log('millrace: typescript is not installed, dist/ is not rebuilt')
} else {
  rmSync(`${root}/dist`, { recursive: true, force: true })
  execFileSync(
    process.execPath,
    [`${root}/node_modules/typescript/bin/tsc`, '-p', 'tsconfig.build.json'],
    {
      cwd: root,
      stdio: 'inherit',
    },
  )
}
