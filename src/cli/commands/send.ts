import { parseExactJson } from '../../model/exact-json.ts'
import type { SendOptions } from '../../runtime/send.ts'
import type { Call, Command } from '../command.ts'
import { parseDuration } from '../duration.ts'
import { DONE, type ExitCode } from '../exit-code.ts'
import { notTaken } from '../json-text.ts'
import { sendLines } from '../send-lines.ts'
import { readAll, textOf } from '../standard-input.ts'
import { UsageError } from '../usage-error.ts'
import { wholeNumber } from '../whole-number.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const send: Command = {
  name: 'send',
  summary: 'store a message; the payload is JSON, - reads it from stdin',
  operands: "<queue> '<json>' | - | --batch",
  minOperands: 1,
  maxOperands: 2,
  options: {
    key: { value: '<key>', help: 'idempotency key: the same key and payload is stored once' },
    'dedupe-key': { value: '<key>', help: 'whatever the payload: the same key is stored once' },
    delay: { value: '<duration>', help: 'not before this time has passed' },
    priority: { value: '<n>', help: '0 to 9, higher first; default 0' },
    batch: {
      help: 'one JSON payload on each line of stdin, stored 500 at a time, each 500 all or nothing',
    },
  },
  run: (call) => {
    const options = optionsOf(call)
    const [name = '', text] = call.operands
    if (call.is('batch')) return sendBatch(call, name, text, options)
    if (text === undefined) {
      throw new UsageError(
        "send needs a payload: millrace send <queue> '<json>', or - to read it from stdin",
      )
    }
    return withApp(call, 'auto', async (open) => {
      const queue = queueNamed(open, name)
      const input = text === '-' ? textOf(await readAll(call.io), 'standard input') : text
      const payload = parsePayload(input, text === '-')
      const result = await open.app.send(queue, payload, options)
      if (call.out.json) call.out.data(result)
      else
        call.out.line(result.duplicate ? `${result.id} (duplicate: nothing was stored)` : result.id)
      return DONE
    })
  },
}

function optionsOf(call: Call): SendOptions {
  const key = call.value('key')
  const dedupeKey = call.value('dedupe-key')
  const delay = call.value('delay')
  const priority = wholeNumber('--priority', call.value('priority'), { min: 0, max: 9 })
  return {
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(dedupeKey === undefined ? {} : { dedupeKey }),
    ...(delay === undefined ? {} : { delayMs: parseDuration('--delay', delay) }),
    ...(priority === undefined ? {} : { priority }),
  }
}

function parsePayload(text: string, isInput: boolean): unknown {
  if (text.trim() === '')
    throw new UsageError(isInput ? 'no message on standard input' : 'the payload is empty')
  try {
    return parseExactJson(text)
  } catch (cause) {
    throw new UsageError(`the payload${notTaken(cause)}`, { cause })
  }
}

function sendBatch(
  call: Call,
  name: string,
  text: string | undefined,
  { idempotencyKey, dedupeKey, ...shared }: SendOptions,
): Promise<ExitCode> {
  if (text !== undefined && text !== '-')
    throw new UsageError('send --batch reads stdin and takes no payload')
  if (idempotencyKey !== undefined || dedupeKey !== undefined) {
    throw new UsageError(
      'one key belongs to one message: --key and --dedupe-key do not go with --batch',
    )
  }
  return withApp(call, 'auto', (open) => sendLines(call, open.app, queueNamed(open, name), shared))
}
