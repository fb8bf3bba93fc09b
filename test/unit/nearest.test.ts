import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue } from 'millrace'
import { z } from 'zod'
import { nearest } from '../../src/model/nearest.ts'

const OPTIONS = [
  'name',
  'owner',
  'payload',
  'retry',
  'priorities',
  'capacity',
  'dedupe',
  'handlerTimeoutMs',
  'concurrencyLimit',
  'rateLimit',
  'order',
]
const COMMANDS = ['stats', 'start', 'migrate', 'dlq ls']

function found(words: readonly string[], known: readonly string[]): readonly unknown[] {
  return words.map((word) => nearest(word, known))
}

test('A mistyped word is found, and of equals the one whose end is missing.', () => {
  assert.deepEqual(found(['handlerTimeoutMS', 'retyr', 'PAYLOAD', 'ownr', 'dedup'], OPTIONS), [
    'handlerTimeoutMs',
    'retry',
    'payload',
    'owner',
    'dedupe',
  ])
  assert.equal(nearest('migrat', ['migrant', 'migrate']), 'migrate')
  assert.deepEqual(found(['stat', 'starts', 'migrte'], COMMANDS), ['stats', 'start', 'migrate'])
})

test('The plural of a known word is found, and the singular of one.', () => {
  assert.deepEqual(found(['retries', 'Retries', 'priority', 'capacities', 'orders'], OPTIONS), [
    'retry',
    'retry',
    'priorities',
    'capacity',
    'order',
  ])
  assert.deepEqual(found(['batch', 'indexes'], ['batches', 'index']), ['batches', 'index'])
})

test('A name that lacks whole words at its end, or has more of them, is found; the shortest rest is the nearest.', () => {
  assert.deepEqual(
    found(['concurrency', 'handler', 'rate', 'retryPolicy', 'retryOptions'], OPTIONS),
    ['concurrencyLimit', 'handlerTimeoutMs', 'rateLimit', 'retry', 'retry'],
  )
  assert.deepEqual(found(['orders'], ['orders-eu-west', 'orders-archive', 'orders.eu']), [
    'orders.eu',
  ])
})

test('What is only a little like a known word, or begins with its letters, is not guessed.', () => {
  assert.deepEqual(
    found(['visibility', 'retryable', 'backoff', 'con', 'ratelimitation', '', 'onFailed'], OPTIONS),
    Array(7).fill(undefined),
  )
  assert.equal(nearest('orders', []), undefined)
})

test('A queue with retries is told of retry.', () => {
  const options = { name: 'mails', owner: 'o', payload: z.string(), retries: 3, concurrency: 5 }
  assert.throws(() => defineQueue(options), {
    code: 'MILLRACE_INVALID_OPTIONS',
    problems: [
      'unknown option "retries", did you mean "retry"?',
      'unknown option "concurrency", did you mean "concurrencyLimit"?',
    ],
  })
})
