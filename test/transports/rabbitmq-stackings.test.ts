import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BlobStore, fileBlobs } from 'millrace/blobs'
import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { type RabbitHarnessOptions, rabbitHarness } from './rabbitmq-harness.ts'

const url = backendUrl('rabbitmq')

/** What start-up stacks for choices that few users make; each is a few minutes of the same code. */
const subjects: readonly Omit<RabbitHarnessOptions, 'url'>[] = [
  { queueType: 'classic', layers: true },
  { queueType: 'quorum', delays: false },
  { queueType: 'quorum', delays: false, layers: true },
]

async function kitOf(subject: Omit<RabbitHarnessOptions, 'url'>): Promise<Kit> {
  const harness = await rabbitHarness({ url: url ?? '', ...subject })
  return {
    name: harness.name,
    atOnce: 4,
    leftToFull: true,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  }
}

/** Every body is a file, so the files say that the kit ran on it. */
async function claimChecked(): Promise<Kit> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-kit-blobs-'))
  const blobs = fileBlobs({ folder })
  let puts = 0
  const counted: BlobStore = {
    ...blobs,
    put: (...given) => {
      puts += 1
      return blobs.put(...given)
    },
  }
  const kit = await kitOf({ queueType: 'quorum', layers: true, blobs: counted })
  let isRun = false
  return {
    ...kit,
    register: (test) => {
      isRun = true
      return kit.register(test)
    },
    dispose: async () => {
      await kit.dispose()
      await rm(folder, { recursive: true, force: true })
      if (isRun) assert.ok(puts > 0, 'no body went to the blobs')
    },
  }
}

if (url !== undefined) {
  const kits = await Promise.all([...subjects.map(kitOf), claimChecked()])
  // One after the other: the broker is what works here.
  await runKits(kits, 1)
}
