import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

const MODULE_SYNTAX = /^\s*(?:import\b|export\b)/m

let registered = false

/**
 * `npm init` writes `"type": "commonjs"`, and then Node reads a `.ts` file with imports as CommonJS and fails on its
 * first line. From here on, `.ts` files outside node_modules that use module syntax are modules, whatever package.json
 * says.
 */
export function readTypeScriptAsModules(): void {
  if (registered) return
  registered = true
  registerHooks({
    load: (url, context, next) =>
      isModule(url, context.format)
        ? next(url, { ...context, format: 'module-typescript' })
        : next(url, context),
  })
}

function isModule(url: string, format: string | null | undefined): boolean {
  if (format === 'module-typescript' || !url.startsWith('file:')) return false
  const { pathname } = new URL(url)
  if (!pathname.endsWith('.ts') || pathname.includes('/node_modules/')) return false
  return MODULE_SYNTAX.test(readFileSync(fileURLToPath(new URL(pathname, 'file:///')), 'utf8'))
}
