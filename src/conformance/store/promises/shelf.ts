import assert from 'node:assert/strict'
import type { DeadLetter } from '../../../model/dead-letter.ts'
import type { Store } from '../../../store/store.ts'
import type { StoreFamily } from '../scope.ts'

const NOTE = { actor: 'somebody „€“', reason: 'try again' }

async function all(store: Store, queue: string, limit: number): Promise<readonly DeadLetter[]> {
  const letters: DeadLetter[] = []
  let cursor: string | null = null
  do {
    const page = await store.shelf.list(queue, { limit, ...(cursor === null ? {} : { cursor }) })
    assert.ok(page.items.length <= limit)
    letters.push(...page.items)
    cursor = page.cursor
  } while (cursor !== null)
  return letters
}

function idsOf(letters: readonly DeadLetter[]): readonly string[] {
  return letters.map(({ envelope }) => envelope.id)
}

export const shelf: StoreFamily = {
  name: 'store: shelf',
  promises: [
    {
      title: 'A dead letter comes back as it was put, bytes, headers and history.',
      async keep({ near, far, fresh, message, letter }) {
        const queue = fresh()
        const envelope = message({
          body: new Uint8Array([0, 255, 128]),
          headers: { 'x-a': 'ä\0\ud800' },
          priority: 3,
          idempotencyKey: 'k',
          orderingKey: 'o',
        })
        const history = {
          counted: 3,
          crashes: 1,
          throttledSince: 1_767_225_600_123,
          records: [{ at: 5, errorClass: 'transient', code: 'X', message: 'm\0', stack: 's' }],
          redrives: 2,
        } as const
        const put = letter(queue, { envelope, history, reason: 'no\0 „€“', errorClass: 'crashed' })
        await near.shelf.put([put])
        const found = await far.shelf.get(queue, envelope.id)
        assert.ok(found)
        assert.ok(Number.isFinite(found.deadAt))
        const { deadAt, ...rest } = found
        assert.deepEqual(plain(rest), plain(put))
        const listed = (await far.shelf.list(queue, { limit: 10 })).items
        assert.deepEqual(listed.map(plain), [plain({ ...put, deadAt })])
        assert.equal(await far.shelf.get(queue, 'nobody'), undefined)
        assert.equal(await far.shelf.get(fresh(), envelope.id), undefined)
      },
    },
    {
      title: 'A history without a throttled attempt has none after it came back.',
      async keep({ near, far, fresh, letter }) {
        const put = letter(fresh())
        await near.shelf.put([put])
        const found = await far.shelf.get(put.queue, put.envelope.id)
        assert.deepEqual(found?.history, put.history)
      },
    },
    {
      title: 'Pages list every letter once, newest first, also those that died at the same time.',
      async keep({ near, far, fresh, letter, passes }) {
        const queue = fresh()
        const batches = Array.from({ length: 3 }, () =>
          Array.from({ length: 9 }, () => letter(queue)),
        )
        for (const batch of batches) {
          await near.shelf.put(batch)
          await passes(5)
        }
        const listed = await all(far, queue, 4)
        const put = batches.flat().map(({ envelope }) => envelope.id)
        assert.deepEqual(idsOf(listed).toSorted(), put.toSorted())
        const sorted = listed.toSorted(
          (a, b) => b.deadAt - a.deadAt || (a.envelope.id < b.envelope.id ? 1 : -1),
        )
        assert.deepEqual(idsOf(listed), idsOf(sorted))
      },
    },
    {
      title: 'A cursor goes on where its page ended, whatever was put or removed meanwhile.',
      async keep({ near, far, fresh, letter, passes }) {
        const queue = fresh()
        const old = letter(queue)
        await near.shelf.put([old])
        await passes(5)
        await near.shelf.put([letter(queue), letter(queue)])
        await passes(5)
        const page = await far.shelf.list(queue, { limit: 2 })
        assert.ok(page.cursor !== null)
        await near.shelf.put([letter(queue)])
        await near.shelf.discard(queue, idsOf(page.items), NOTE)
        const next = await far.shelf.list(queue, { limit: 2, cursor: page.cursor })
        assert.deepEqual(idsOf(next.items), [old.envelope.id])
        assert.equal(next.cursor, null)
      },
    },
    {
      title: 'A cursor that no list gave is refused.',
      async keep({ near, fresh }) {
        for (const cursor of ['x', '', '1_\0', '_a']) {
          await assert.rejects(near.shelf.list(fresh(), { limit: 1, cursor }), isInvalid)
        }
      },
    },
    {
      title: 'Letters are filtered by class and by time, listed and counted alike.',
      async keep({ near, far, fresh, letter, passes }) {
        const queue = fresh()
        const crashed = letter(queue, { errorClass: 'crashed' })
        await near.shelf.put([letter(queue), crashed])
        await passes(20)
        await near.shelf.put([letter(queue, { errorClass: 'crashed' })])
        const before = (await far.shelf.get(queue, crashed.envelope.id))?.deadAt
        assert.ok(before !== undefined)
        const filter = { errorClass: 'crashed', deadBefore: before } as const
        const { items } = await far.shelf.list(queue, { ...filter, limit: 10 })
        assert.deepEqual(idsOf(items), [crashed.envelope.id])
        assert.equal(await far.shelf.count(queue, filter), 1)
        assert.equal(await far.shelf.count(queue, { errorClass: 'crashed' }), 2)
        assert.equal(await far.shelf.count(queue, { deadBefore: before }), 2)
        assert.equal(await far.shelf.count(queue, {}), 3)
        assert.equal(await far.shelf.count(fresh(), {}), 0)
      },
    },
    {
      title: 'A letter that is put again gives way to the newer one, which is later.',
      async keep({ near, far, fresh, letter }) {
        const queue = fresh()
        const first = letter(queue, { reason: 'first' })
        await near.shelf.put([first])
        const before = await far.shelf.get(queue, first.envelope.id)
        const envelope = { ...first.envelope, body: new Uint8Array([2]), headers: { n: '2' } }
        const second = { ...first, envelope, reason: 'second', errorClass: 'crashed' } as const
        await far.shelf.put([second])
        const after = await near.shelf.get(queue, first.envelope.id)
        assert.ok(before && after && after.deadAt > before.deadAt)
        assert.deepEqual(plain(after), plain({ ...second, deadAt: after.deadAt }))
        assert.equal(await far.shelf.count(queue, {}), 1)
        assert.equal(await far.shelf.count(queue, { errorClass: 'crashed' }), 1)
      },
    },
    {
      title: 'A redriven letter is gone, and who redrove it is written down.',
      async keep({ near, far, fresh, letter }) {
        const queue = fresh()
        const [one, two] = [letter(queue), letter(queue)]
        await near.shelf.put([one, two])
        const kept = (await far.shelf.list(queue, { limit: 10 })).items
        const letters = kept.map(({ envelope, deadAt }) => ({ id: envelope.id, deadAt }))
        const asked = [...letters, { id: 'nobody', deadAt: 1 }]
        const gone = await near.shelf.redriven(queue, asked, NOTE)
        assert.deepEqual(gone.toSorted(), idsOf(kept).toSorted())
        assert.deepEqual(await far.shelf.redriven(queue, asked, NOTE), [])
        assert.equal(await far.shelf.count(queue, {}), 0)
        const audit = await far.shelf.audit(queue, 10)
        assert.deepEqual(
          audit.map(({ act, actor, reason }) => ({ act, actor, reason })),
          kept.map(() => ({ act: 'redrive', ...NOTE })),
        )
      },
    },
    {
      title:
        'A letter that died again while it was redriven stays, and the redrive is written down.',
      async keep({ near, far, fresh, letter }) {
        const queue = fresh()
        const first = letter(queue)
        const { id } = first.envelope
        await near.shelf.put([first])
        const sent = await near.shelf.get(queue, id)
        assert.ok(sent)
        await far.shelf.put([{ ...first, reason: 'again' }])
        assert.deepEqual(await near.shelf.redriven(queue, [{ id, deadAt: sent.deadAt }], NOTE), [
          id,
        ])
        assert.equal((await far.shelf.get(queue, id))?.reason, 'again')
        assert.equal((await far.shelf.audit(queue, 10)).length, 1)
      },
    },
    {
      title: 'A discarded letter is gone for good, and who discarded it is written down.',
      async keep({ near, far, fresh, letter }) {
        const queue = fresh()
        const one = letter(queue)
        const { id } = one.envelope
        await near.shelf.put([one])
        assert.deepEqual(await far.shelf.discard(queue, ['nobody', id, id], NOTE), [id])
        assert.deepEqual(await near.shelf.discard(queue, [id], NOTE), [])
        assert.equal(await near.shelf.get(queue, id), undefined)
        const [entry, ...more] = await near.shelf.audit(queue, 10)
        assert.equal(more.length, 0)
        assert.deepEqual(entry && { ...entry, at: 0 }, {
          ...NOTE,
          at: 0,
          act: 'discard',
          queue,
          messageId: id,
        })
      },
    },
    {
      title: 'The audit log lists the newest first, as many as asked for, of one queue.',
      async keep({ near, far, fresh, letter }) {
        const queue = fresh()
        const letters = Array.from({ length: 4 }, () => letter(queue))
        await near.shelf.put(letters)
        const ids = letters.map(({ envelope }) => envelope.id)
        for (const id of ids) await near.shelf.discard(queue, [id], NOTE)
        const newest = (await far.shelf.audit(queue, 3)).map(({ messageId }) => messageId)
        assert.deepEqual(newest, ids.toReversed().slice(0, 3))
        assert.deepEqual(await far.shelf.audit(fresh(), 3), [])
      },
    },
    {
      title: 'Of two that discard or redrive one letter at once, exactly one does.',
      async keep({ near, far, fresh, letter, settles }) {
        const queue = fresh()
        const letters = Array.from({ length: 30 }, () => letter(queue))
        await near.shelf.put(letters)
        const kept = (await near.shelf.list(queue, { limit: 100 })).items
        const ids = idsOf(kept)
        const asked = kept.map(({ envelope, deadAt }) => ({ id: envelope.id, deadAt }))
        const acts = [
          near.shelf.discard(queue, ids, NOTE),
          far.shelf.discard(queue, ids.toReversed(), NOTE),
          near.shelf.redriven(queue, asked.toReversed(), NOTE),
          far.shelf.redriven(queue, asked, NOTE),
        ]
        const gone = (await settles('four removals', Promise.all(acts))).flat()
        assert.deepEqual(gone.toSorted(), ids.toSorted())
        assert.equal((await far.shelf.audit(queue, 100)).length, 30)
      },
    },
    {
      title: 'Letters put in opposite orders at once are all there.',
      async keep({ near, far, fresh, letter, settles }) {
        const queue = fresh()
        const letters = Array.from({ length: 40 }, () => letter(queue))
        const acts = [near.shelf.put(letters), far.shelf.put(letters.toReversed())]
        await settles('two puts', Promise.all(acts))
        assert.equal(await near.shelf.count(queue, {}), 40)
      },
    },
  ],
}

function plain<T extends Pick<DeadLetter, 'envelope'>>(letter: T): unknown {
  return { ...letter, envelope: { ...letter.envelope, body: [...letter.envelope.body] } }
}

function isInvalid(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'MILLRACE_INVALID_OPTIONS'
}
