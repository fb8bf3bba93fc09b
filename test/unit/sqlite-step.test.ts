import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstStep, inSteps } from '../../src/sql/sqlite-step.ts'

const MIB = 1_048_576
const bytesOf = (one: number): number => one

test('A step has 4 MiB at most, or its first one, and no more than it may have', () => {
  const step = (...all: readonly number[]) => firstStep(all, 3, bytesOf)
  assert.deepEqual(step(3 * MIB, MIB, 1), [3 * MIB, MIB])
  assert.deepEqual(step(3 * MIB, MIB + 1), [3 * MIB])
  assert.deepEqual(step(5 * MIB, 0), [5 * MIB])
  assert.deepEqual(step(1, 2, 3, 4), [1, 2, 3])
  assert.deepEqual(step(1, 2, 3), [1, 2, 3])
  assert.deepEqual(step(), [])
})

test('Steps take all in their order, each once, whatever went of them and however large one is', async () => {
  const all = [1, 5 * MIB, 2, 6 * MIB, 3, 4, 5, 6]
  const steps: (readonly number[])[] = []
  const went = await inSteps(all, {
    write: async (work) => work(),
    max: 3,
    bytesOf,
    act: (step) => {
      steps.push(step)
      // Of the even ones somebody else was faster.
      return step.filter((one) => one % 2 === 1).map(String)
    },
  })
  assert.deepEqual(steps, [[1], [5 * MIB], [2], [6 * MIB], [3, 4, 5], [6]])
  assert.deepEqual(went, ['1', '3', '5'])
})

test('The size of each is asked for in the step that takes it', async () => {
  let inStep = false
  const asked: number[] = []
  await inSteps([1, 2, 3, 4, 5], {
    write: async (work) => {
      inStep = true
      const done = work()
      inStep = false
      return done
    },
    max: 2,
    bytesOf: (one) => {
      assert.ok(inStep)
      asked.push(one)
      return 1
    },
    act: () => [],
  })
  assert.deepEqual(asked, [1, 2, 3, 4, 5])
})
