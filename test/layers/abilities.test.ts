import assert from 'node:assert/strict'
import { test } from 'node:test'
import { abilitiesOf, type Need } from '../../src/layers/abilities.ts'
import { storeNeeds } from '../../src/layers/layered.ts'
import type { Traits } from '../../src/transport/traits.ts'
import type { Browse } from '../../src/transport/transport.ts'
import { memoryTraits } from '../../src/transports/memory/traits.ts'
import { fifoTraits, standardTraits } from '../../src/transports/sqs/traits.ts'

type From = 'backend' | 'layer' | 'store'

const gauge: Browse['gauge'] = async () => ({
  depth: 0,
  scheduled: undefined,
  inFlight: undefined,
  dead: undefined,
  ageMs: undefined,
  paused: false,
})
const canPause: Browse = { gauge, setPaused: async () => {} }

const rows: readonly (readonly [
  what: string,
  traits: Traits,
  browse: Browse,
  expected: Readonly<Partial<Record<Need, From>>>,
])[] = [
  [
    'a database does all by itself',
    memoryTraits,
    canPause,
    {
      delays: 'backend',
      attempts: 'backend',
      deadLetters: 'backend',
      keys: 'backend',
      pauses: 'backend',
      crashes: 'backend',
      priorities: 'backend',
    },
  ],
  [
    'SQS waits for 15 minutes, the rest is copies and the store',
    standardTraits,
    { gauge },
    {
      delays: 'store',
      attempts: 'layer',
      deadLetters: 'store',
      keys: 'store',
      pauses: 'store',
      crashes: 'store',
      priorities: 'layer',
    },
  ],
  [
    'SQS FIFO keeps its order: no copies, no delays from elsewhere',
    fifoTraits,
    { gauge },
    {
      delays: 'backend',
      attempts: 'store',
      deadLetters: 'store',
      keys: 'store',
      pauses: 'store',
      crashes: 'store',
    },
  ],
  [
    'a log keeps its order, too',
    { ...standardTraits, settles: 'upTo', order: 'perKey', release: 'none', delay: 'none' },
    { gauge },
    {
      delays: 'backend',
      attempts: 'store',
      deadLetters: 'store',
      keys: 'store',
      pauses: 'store',
      crashes: 'store',
    },
  ],
  [
    'a fixed window is no memory of keys',
    { ...memoryTraits, dedupe: { windowMs: 120_000 } },
    canPause,
    {
      delays: 'backend',
      attempts: 'backend',
      deadLetters: 'backend',
      keys: 'store',
      pauses: 'backend',
      crashes: 'backend',
      priorities: 'backend',
    },
  ],
]

for (const [what, traits, browse, expected] of rows) {
  test(`abilities: ${what}`, () => {
    const found = abilitiesOf({ traits, browse })
    assert.deepEqual(Object.fromEntries(found.map(({ need, from }) => [need, from])), expected)
    for (const { need, from, lack } of found) {
      // Keys and pauses can be done without; a send that asks for a key is then refused by name.
      const mayLack = need === 'keys' || need === 'pauses' || need === 'crashes'
      assert.equal(lack !== undefined, from === 'store' && !mayLack, need)
    }
  })
}

test('what is needed of a store is said in one phrase each', () => {
  assert.deepEqual(storeNeeds({ traits: standardTraits, browse: { gauge } }), [
    'delays and backoff of up to a day',
    'dead letters that can be listed and redriven',
  ])
  assert.deepEqual(storeNeeds({ traits: memoryTraits, browse: canPause }), [])
})
