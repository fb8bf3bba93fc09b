#!/usr/bin/env node
// Plain enough for any Node, so that an old one gets a sentence instead of a syntax error.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `millrace needs Node 22.18 or newer, this is ${process.versions.node} [MILLRACE_UNSUPPORTED_NODE]`,
  )
  process.exitCode = 2
} else {
  import('#cli').then(({ runProcess }) => runProcess())
}
