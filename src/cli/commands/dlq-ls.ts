import type { ErrorClass } from '../../model/history.ts'
import { errorClasses } from '../../model/history.ts'
import { nearest } from '../../model/nearest.ts'
import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { pageAsked, pagingOptions, showPage } from '../paging.ts'
import { timeText } from '../terminal-text.ts'
import { UsageError } from '../usage-error.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const dlqLs: Command = {
  name: 'dlq ls',
  summary: 'list dead letters, newest first',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: {
    class: { value: '<class>', help: `only this error class: ${errorClasses.join(', ')}` },
    ...pagingOptions,
  },
  notes: [
    'Ends with 1 when something is wrong with the backend, and says what: the list may not be whole then.',
  ],
  run: (call) => {
    const errorClass = errorClassOf(call.value('class'))
    const asked = pageAsked(call)
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      const page = await open.app.admin.deadLetters.list(queue, {
        ...(errorClass === undefined ? {} : { errorClass }),
        ...asked,
      })
      // A list that is not whole must not look as if it were.
      const { problems } = open.app.admin.backend()
      for (const problem of problems) call.out.note(`millrace: ${problem}`)
      showPage(call, page, {
        nothing: `no dead letters in queue "${queue.name}"`,
        head: ['ID', 'DEAD AT', 'CLASS', 'ATTEMPTS', 'REASON'],
        row: (one) => [
          one.id,
          timeText(one.deadAt),
          one.errorClass,
          String(one.attempts.length),
          one.reason,
        ],
      })
      return problems.length === 0 ? DONE : FAILED
    })
  },
}

/** @throws UsageError with the nearest class. */
export function errorClassOf(text: string | undefined): ErrorClass | undefined {
  if (text === undefined) return undefined
  const found = errorClasses.find((one) => one === text)
  if (found !== undefined) return found
  const near = nearest(text, errorClasses)
  const hint = near === undefined ? `expected ${errorClasses.join(', ')}` : `did you mean ${near}?`
  throw new UsageError(`--class: no error class ${JSON.stringify(text)}; ${hint}`)
}
