import type { DeadLetterView, MessageView } from '../admin/admin.ts'
import type { AttemptRecord } from '../model/history.ts'
import { oneLine, terminalJson, terminalText, timeText } from './terminal-text.ts'

/** A message in full, for people. */
export function messageText(view: MessageView, stacks: boolean): readonly string[] {
  return fields([
    ['id', view.id],
    ['queue', view.queue],
    ['state', view.state],
    ['attempt', String(view.attempt)],
    ['priority', String(view.priority)],
    ['sent at', timeText(view.sentAt)],
    ['ready at', timeText(view.readyAt)],
    ...contentFields(view),
  ]).concat(attemptLines(view.attempts, stacks))
}

/** A dead letter in full, for people. */
export function deadLetterText(view: DeadLetterView, stacks: boolean): readonly string[] {
  return fields([
    ['id', view.id],
    ['queue', view.queue],
    ['owner', view.owner],
    ['class', view.errorClass],
    ['reason', view.reason],
    ['sent at', timeText(view.sentAt)],
    ['dead at', timeText(view.deadAt)],
    ['redrives', String(view.redrives)],
    ...contentFields(view),
  ]).concat(attemptLines(view.attempts, stacks))
}

type Field = readonly [name: string, text: string]

function contentFields(view: MessageView | DeadLetterView): readonly Field[] {
  return [
    ['key', view.idempotencyKey],
    ['headers', terminalJson(view.headers)],
    ['payload', terminalJson(view.payload)],
    ...(view.bodyBase64 === undefined ? [] : [['base64', view.bodyBase64] as const]),
  ]
}

/** Names and values that line up. */
export function fields(all: readonly Field[]): string[] {
  const width = Math.max(...all.map(([name]) => name.length))
  return all.map(([name, text]) => `${name.padEnd(width)}  ${oneLine(text, 20_000)}`)
}

function attemptLines(attempts: readonly AttemptRecord[], stacks: boolean): readonly string[] {
  if (attempts.length === 0) return ['', 'no failed attempts']
  return ['', 'failed attempts:'].concat(
    attempts.flatMap(({ at, errorClass, code, message, stack }, i) => {
      const line = `${String(i + 1).padStart(3)}  ${timeText(at)}  ${errorClass}  ${oneLine(code)}  ${oneLine(message, 1_000)}`
      return stacks && stack !== undefined ? [line, indented(stack)] : [line]
    }),
  )
}

function indented(text: string): string {
  return terminalText(text).replace(/^/gm, '       ')
}
