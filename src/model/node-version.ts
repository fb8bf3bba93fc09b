// Imported first by every public entry, so that an old Node says what is wrong before something new fails in it.
import { MillraceError } from './errors.ts'

/** Also in package.json (engines) and in bin/millrace.js, which cannot import this. */
const NEEDED = { major: 22, minor: 18 }

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED.major || (major === NEEDED.major && minor < NEEDED.minor)) {
  const error = new MillraceError(
    'MILLRACE_UNSUPPORTED_NODE',
    `millrace needs Node ${NEEDED.major}.${NEEDED.minor} or newer, this is ${process.versions.node} [MILLRACE_UNSUPPORTED_NODE]`,
  )
  // Where in us it was thrown helps nobody.
  error.stack = error.message
  // Node prints the properties of an error that nobody catches; the line says it all.
  for (const key of Object.keys(error)) Object.defineProperty(error, key, { enumerable: false })
  throw error
}
