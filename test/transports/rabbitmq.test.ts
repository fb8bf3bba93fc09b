import { after, describe, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { rabbitHarness } from './rabbitmq-harness.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'

/** Most of the kit waits; its tests use a queue of their own each and may wait together. */
const AT_ONCE = 4

const url = backendUrl('rabbitmq')

const subjects = [
  { queueType: 'quorum' },
  { queueType: 'classic' },
  { queueType: 'quorum', layers: true },
] as const

for (const subject of url === undefined ? [] : subjects) {
  const harness = await rabbitHarness({ url: url ?? '', ...subject })
  after(() => harness.dispose())
  const promises: { readonly title: string; readonly keep: () => Promise<void> }[] = []
  await conformance({
    test: (title, keep) => promises.push({ title, keep }),
    harness,
    depth,
    onResult: recordResult,
  })
  describe(harness.name, { concurrency: AT_ONCE }, () => {
    for (const { title, keep } of promises) test(title, keep)
  })
}
