import type { DeadLetter } from '../../model/dead-letter.ts'
import { errorClasses, errorClassOf } from '../../model/history.ts'
import { auditEntry, texts, upTo } from '../../redis/shelf-place.ts'
import type { Reply } from '../../redis/wire.ts'
import type { StoredShelf } from '../../store/stored-shelf.ts'
import { PAGE_BYTES_MAX, pageOf } from '../../transport/shelf-page.ts'
import type { AuditEntry, AuditNote } from '../../transport/transport.ts'
import { envelopeFrom, envelopeText, letterFrom, letterText } from '../stored-message.ts'
import { bufferOf, type Database, listOf, steps } from './database.ts'

const KINDS = ['letters', 'dead', ...errorClasses.map((name) => `dead:${name}`), 'audit']

export function redisShelf({ run, key }: Database): StoredShelf {
  const keysOf = (queue: string): readonly string[] =>
    KINDS.map((kind) => key(queue, `shelf:${kind}`))
  const remove = async (
    queue: string,
    act: AuditEntry['act'],
    letters: readonly (readonly [string, string])[],
    { actor, reason }: AuditNote,
  ): Promise<readonly string[]> => {
    const gone: string[] = []
    for (const step of steps(letters)) {
      const args = [act, actor, reason, ...step.flat()]
      gone.push(...texts(await run('REMOVE_LETTERS', keysOf(queue), args)))
    }
    return gone
  }
  return {
    async put(batch) {
      for (const [queue, letters] of Map.groupBy(batch, (letter) => letter.queue)) {
        for (const step of steps(letters)) {
          await run('PUT_LETTERS', keysOf(queue), step.flatMap(letterArgs))
        }
      }
    },
    async list(queue, options) {
      const { errorClass = '', limit, bodies = true } = options
      const most = bodies ? String(PAGE_BYTES_MAX) : ''
      const args = [errorClass, upTo(options), String(limit + 1), most]
      const found = listOf(await run('LIST_LETTERS', keysOf(queue), args))
      return pageOf(
        found.map((reply) => deadLetterOf(reply, queue)),
        limit,
      )
    },
    async get(queue, id) {
      const reply = await run('GET_LETTER', keysOf(queue), [id])
      return reply === null ? undefined : deadLetterOf(reply, queue)
    },
    count: async (queue, filter) =>
      Number(await run('COUNT_LETTERS', keysOf(queue), [filter.errorClass ?? '', upTo(filter)])),
    redriven: (queue, letters, note) => {
      const moments = letters.map(({ id, deadAt }) => [id, String(deadAt)] as const)
      return remove(queue, 'redrive', moments, note)
    },
    discard: (queue, ids, note) =>
      remove(
        queue,
        'discard',
        ids.map((id) => [id, ''] as const),
        note,
      ),
    audit: async (queue, limit) =>
      listOf(await run('AUDIT', keysOf(queue), [String(limit)])).map((entry) =>
        auditEntry(entry, queue),
      ),
  }
}

function letterArgs(letter: Omit<DeadLetter, 'deadAt'>): readonly (string | Buffer)[] {
  const { envelope, errorClass } = letter
  const rest = [letterText(letter), envelopeText(envelope), bufferOf(envelope.body)]
  return [envelope.id, errorClass, ...rest]
}

function deadLetterOf(reply: Reply, queue: string): DeadLetter {
  const [id, deadAt, errorClass, letter, message, body] = listOf(reply)
  return {
    ...letterFrom(String(letter)),
    envelope: envelopeFrom(String(id), String(message), body),
    queue,
    errorClass: errorClassOf(String(errorClass)),
    deadAt: Number(deadAt),
  }
}
