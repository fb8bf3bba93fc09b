import { guaranteesTable, type Result } from 'millrace/conformance'

/** docs/guarantees.md, from what a run of the conformance kit wrote down (one JSON object a line). */
export function guaranteesPage(lines: string): string {
  const results: readonly Result[] = lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  return `${HEAD}\n${guaranteesTable(inOrder(results))}\n`
}

const HEAD = `# Guarantees

What each backend keeps of what Millrace promises. This page is written from a run of the conformance kit
(\`npm test\`, then \`npm run guarantees\`), and \`npm test\` fails when it says anything else than the run showed. The kit
looks from a second connection, runs with injected faults, and chooses its promises by the backend's traits: \`–\` means that
the backend does not make this promise.

What no backend can promise: that a handler runs once. Messages are delivered at least once, with duplicates. *Effects* happen
once when effect and record commit in one transaction, which is what \`ctx.tx\` joins (see [the glossary](glossary.md)).
`

const ORDER = ['memory', 'sqlite', 'postgres', 'pgbouncer', 'redis', 'valkey']

/**
 * By backend; within one as the first backend that makes the promise ran it, the simplest first. Test files, and promises
 * within one, run side by side, so the lines come mixed.
 */
function inOrder(results: readonly Result[]): readonly Result[] {
  const rank = ({ backend }: Result): number =>
    ORDER.findIndex((prefix) => backend.startsWith(prefix))
  const byBackend = results.toSorted(
    (a, b) => rank(a) - rank(b) || a.backend.localeCompare(b.backend),
  )
  const titles = [...new Set(byBackend.map(({ title }) => title))]
  const place = new Map(titles.map((title, i) => [title, i]))
  const placeOf = ({ title }: Result): number => place.get(title) ?? titles.length
  return byBackend.toSorted(
    (a, b) => rank(a) - rank(b) || a.backend.localeCompare(b.backend) || placeOf(a) - placeOf(b),
  )
}

/** The columns of the first table. */
export function backendsOf(page: string): readonly string[] {
  const head = /^\| Promises \| (.*) \|$/m.exec(page)?.[1]
  return head?.split(' | ') ?? []
}
