import assert from 'node:assert/strict'
import type { Delivery } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { acked, assertAllOk, canBrowse, codeOf, died, idsOf, present, released } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'
import { orderedKeys } from '../workloads/ordered-keys.ts'

/** Of a log only what settles one by one hands out one message of a key at a time. */
const perKey = ({ traits }: Subject): boolean =>
  traits.order === 'perKey' && traits.settles === 'each'

const DELAY_MS = 600

/** `A1`, `A2`, `B1`, …: the letter is the key, the number the place; ids are unique to the test. */
function keyed(scope: Scope, ...names: readonly string[]): readonly Envelope[] {
  return names.map((name) => keyedOne(scope, name))
}

function keyedOne(scope: Scope, name: string, more: Partial<Envelope> = {}): Envelope {
  const suffix = Math.floor(scope.random() * 2 ** 40).toString(36)
  return scope.message({ id: `${name}-${suffix}`, orderingKey: name.slice(0, 1), ...more })
}

function nameOf({ envelope }: Delivery): string {
  return envelope.id.slice(0, 2)
}

/** Acks whatever comes, until so many were acked; answers their names in that order. */
async function drain(
  scope: Scope,
  from: Parameters<Scope['receive']>[0],
  count: number,
): Promise<readonly string[]> {
  const done: string[] = []
  await scope.until(`${count} messages in order`, async () => {
    const came = await scope.receive(from)
    if (came.length > 0) assertAllOk(await scope.settle(from, ...came.map(acked)))
    done.push(...came.map(nameOf))
    return done.length >= count
  })
  return done
}

function ofKey(names: readonly string[], key: string): readonly string[] {
  return names.filter((name) => name.startsWith(key))
}

export const order: Family = {
  name: 'order',
  promises: [
    {
      title: 'Of one key a single message is in hand, and the next one follows its ack.',
      when: perKey,
      async keep(scope) {
        const name = await scope.queue()
        await scope.send(scope.near, name, ...keyed(scope, 'A1', 'A2', 'A3'))
        const from = await scope.subscribe(scope.far, name)
        for (const next of ['A1', 'A2', 'A3']) {
          const head = await scope.one(from)
          assert.equal(nameOf(head), next)
          assert.deepEqual(idsOf(await scope.receive(from)), [])
          assertAllOk(await scope.settle(from, acked(head)))
        }
      },
    },
    {
      title: 'Different keys are in hand at once.',
      when: perKey,
      async keep(scope) {
        const name = await scope.queue()
        await scope.send(scope.near, name, ...keyed(scope, 'A1', 'A2', 'B1', 'C1'))
        const came = await scope.take(await scope.subscribe(scope.far, name), 3)
        assert.deepEqual(came.map(nameOf).sort(), ['A1', 'B1', 'C1'])
      },
    },
    {
      title: 'A released message comes again before its successors.',
      when: (subject) => perKey(subject) && subject.traits.release === 'delayed',
      async keep(scope) {
        const { near, far, settle, traits } = scope
        const name = await scope.queue()
        await scope.send(near, name, ...keyed(scope, 'A1', 'A2', 'B1', 'B2'))
        const from = await scope.subscribe(far, name)
        const first = await scope.take(from, 2)
        const failed = first.filter((one) => nameOf(one) === 'A1')
        const counted = traits.keepsHistory
        const acts = failed.map((one) => released(one, { counted, delayMs: DELAY_MS }))
        assertAllOk(await settle(from, ...acts))
        assertAllOk(await settle(from, ...first.filter((one) => nameOf(one) === 'B1').map(acked)))
        const done = await drain(scope, from, 3)
        assert.deepEqual(ofKey(done, 'A'), ['A1', 'A2'])
        assert.deepEqual(ofKey(done, 'B'), ['B2'])
        // Where keys share a lane (a partition), all of it waits.
        if (traits.claim.kind !== 'assignment') assert.equal(done[0], 'B2')
      },
    },
    {
      title: 'A key goes on after its head has died.',
      when: (subject) => perKey(subject) && subject.traits.deadLetters === 'native',
      async keep(scope) {
        const name = await scope.queue()
        await scope.send(scope.near, name, ...keyed(scope, 'A1', 'A2', 'A3'))
        const from = await scope.subscribe(scope.far, name)
        assertAllOk(await scope.settle(from, died(await scope.one(from))))
        assert.deepEqual(await drain(scope, from, 2), ['A2', 'A3'])
      },
    },
    {
      title: 'The next holder goes on with the message that a vanished one had in hand.',
      when: perKey,
      async keep(scope) {
        const name = await scope.queue()
        await scope.send(scope.near, name, ...keyed(scope, 'A1', 'A2', 'B1', 'B2'))
        const doomed = await scope.connect()
        await scope.take(await scope.subscribeShortly(doomed, name), 2)
        await scope.vanish(doomed)
        await scope.leaseRunsOut()
        const done = await drain(scope, await scope.subscribe(scope.far, name), 4)
        assert.deepEqual(ofKey(done, 'A'), ['A1', 'A2'])
        assert.deepEqual(ofKey(done, 'B'), ['B1', 'B2'])
      },
    },
    {
      title: 'What a consumer that closes had in hand comes again before its successors.',
      when: perKey,
      async keep(scope) {
        const name = await scope.queue()
        await scope.send(scope.near, name, ...keyed(scope, 'A1', 'A2', 'A3'))
        const first = await scope.subscribe(scope.near, name)
        assert.equal(nameOf(await scope.one(first)), 'A1')
        await first.close()
        const done = await drain(scope, await scope.successor(scope.far, name), 3)
        assert.deepEqual(done, ['A1', 'A2', 'A3'])
      },
    },
    {
      title: 'A cancel of its head lets a key go on, and so does a purge for what is sent later.',
      when: (subject) => perKey(subject) && canBrowse('cancel', 'purge')(subject),
      async keep(scope) {
        const { queue, near, far, send, subscribe, one } = scope
        const name = await queue()
        const sent = keyed(scope, 'A1', 'A2', 'A3', 'A4')
        await send(near, name, ...sent)
        const { cancel, purge } = present(near.browse)
        for (const at of [2, 0]) assert.equal(await cancel?.(name, sent[at]?.id ?? ''), true)
        const from = await subscribe(far, name)
        const head = await one(from)
        assert.equal(nameOf(head), 'A2')
        assert.equal(await purge?.(name), 1)
        await send(near, name, ...keyed(scope, 'A5'))
        assert.deepEqual(idsOf(await scope.receive(from)), [])
        assertAllOk(await scope.settle(from, acked(head)))
        await send(near, name, ...keyed(scope, 'A6', 'A7'))
        assert.equal(await purge?.(name), 3)
        await send(near, name, ...keyed(scope, 'A8', 'A9'))
        assert.deepEqual(await drain(scope, from, 2), ['A8', 'A9'])
      },
    },
    {
      title: 'A delayed message keeps what follows it of its key waiting, and comes no earlier.',
      when: (subject) =>
        perKey(subject) &&
        subject.traits.delay !== 'none' &&
        subject.traits.delayLeavesOrder !== true,
      async keep(scope) {
        const name = await scope.queue()
        const later = (id: string, delayMs: number): Envelope => keyedOne(scope, id, { delayMs })
        const hour = 3_600_000
        const sent = [later('A1', DELAY_MS), ...keyed(scope, 'A2', 'B1'), later('B2', hour)]
        await scope.send(scope.near, name, ...sent, later('C1', hour), keyedOne(scope, 'C2'))
        const from = await scope.subscribe(scope.far, name)
        const done = await drain(scope, from, 3)
        assert.deepEqual(ofKey(done, 'A'), ['A1', 'A2'])
        // The delay of what waits behind another one is not over when that has ended.
        assert.deepEqual(ofKey(done, 'B'), ['B1'])
        assert.deepEqual(idsOf(await scope.receive(from)), [])
      },
    },
    {
      title: 'What waits behind its key takes up room, is found, and is not stored again.',
      when: (subject) =>
        perKey(subject) && subject.traits.capacity === 'exact' && canBrowse('get')(subject),
      async keep(scope) {
        const { near, far, never } = scope
        const name = await scope.queue({ maxDepth: 3 })
        const behind = keyedOne(scope, 'A3')
        await scope.send(near, name, ...keyed(scope, 'A1', 'A2'), behind)
        const { get, gauge } = present(far.browse)
        assert.equal((await gauge(name)).depth, 3)
        assert.equal((await get?.(name, behind.id))?.envelope.orderingKey, 'A')
        const more = await far.send(name, [behind, keyedOne(scope, 'A4')], { signal: never })
        assert.deepEqual(more.map(codeOf), ['duplicate', 'full'])
        const from = await scope.subscribe(far, name)
        assertAllOk(await scope.settle(from, acked(await scope.one(from))))
        assert.equal(nameOf(await scope.one(from)), 'A2')
        const { depth, inFlight } = await gauge(name)
        assert.deepEqual([depth, inFlight], [1, 1])
        await scope.send(near, name, keyedOne(scope, 'A4'))
      },
    },
    {
      title: 'Where deaths do not halt, what is redriven comes after what was sent meanwhile.',
      when: (subject) => perKey(subject) && subject.traits.deadLetters === 'native',
      async keep(scope) {
        const name = await scope.queue()
        await scope.send(scope.near, name, ...keyed(scope, 'A1', 'A2', 'A3'))
        const from = await scope.subscribe(scope.far, name)
        const head = await scope.one(from)
        assertAllOk(await scope.settle(from, died(head)))
        const note = { actor: 'ops', reason: 'a test' }
        const ids = [head.envelope.id]
        assert.deepEqual(await present(scope.far.shelf).redrive(name, ids, note), ids)
        assert.deepEqual(await drain(scope, from, 3), ['A2', 'A3', 'A1'])
      },
    },
    {
      title: 'An ack in a transaction lets its key go on when that commits, and not before.',
      when: (subject) => perKey(subject) && subject.transport.transaction !== undefined,
      async keep(scope) {
        const { queue, near, send, subscribe, begin, one } = scope
        const name = await queue()
        await send(near, name, ...keyed(scope, 'A1', 'A2'))
        const from = await subscribe(near, name)
        const head = await one(from)
        const left = await begin()
        assertAllOk((await (await present(near.transaction)(left.tx))?.ack(name, [head])) ?? [])
        await left.rollback()
        assert.deepEqual(idsOf(await scope.receive(from)), [])
        const kept = await begin()
        assertAllOk((await (await present(near.transaction)(kept.tx))?.ack(name, [head])) ?? [])
        await kept.commit()
        assert.equal(nameOf(await one(from)), 'A2')
      },
    },
    {
      title: 'Keys stay in order while consumers come, fail, go and vanish.',
      when: perKey,
      async keep(scope) {
        const isFull = scope.depth === 'full'
        const verdict = await orderedKeys(scope, {
          keys: isFull ? 40 : 5,
          messagesPerKey: isFull ? 100 : 20,
          consumers: 3,
          vanishes: isFull ? 12 : 3,
          withinMs: isFull ? 600_000 : 90_000,
        })
        assert.deepEqual(verdict, { overtaken: [], together: [], lost: [] })
      },
    },
  ],
}
