// Writes docs/guarantees.md from the last `npm test` (or `npm test -- test/transports`).
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backendsOf, guaranteesPage } from './guarantees-page.ts'

const root = join(import.meta.dirname, '..')
const page = guaranteesPage(readFileSync(join(root, '.test-results/conformance.jsonl'), 'utf8'))
writeFileSync(join(root, 'docs/guarantees.md'), page)
console.log(`docs/guarantees.md: ${backendsOf(page).join(', ')}`)
