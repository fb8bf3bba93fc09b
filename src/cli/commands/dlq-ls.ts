import type { ErrorClass } from '../../model/history.ts'
import { errorClasses } from '../../model/history.ts'
import { nearest } from '../../model/nearest.ts'
import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { table, timeText } from '../terminal-text.ts'
import { UsageError } from '../usage-error.ts'
import { wholeNumber } from '../whole-number.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const dlqLs: Command = {
  name: 'dlq ls',
  summary: 'list dead letters, newest first',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: {
    class: { value: '<class>', help: `only this error class: ${errorClasses.join(', ')}` },
    limit: { value: '<n>', help: '1 to 500; default 50' },
    cursor: { value: '<cursor>', help: 'go on where the page before ended' },
  },
  notes: [
    'Ends with 1 when something is wrong with the backend, and says what: the list may not be whole then.',
  ],
  run: (call) => {
    const errorClass = errorClassOf(call.value('class'))
    const limit = wholeNumber('--limit', call.value('limit'), { min: 1, max: 500 })
    const cursor = call.value('cursor')
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      const page = await open.app.admin.deadLetters.list(queue, {
        ...(errorClass === undefined ? {} : { errorClass }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      })
      // A list that is not whole must not look as if it were.
      const { problems } = open.app.admin.backend()
      for (const problem of problems) call.out.note(`millrace: ${problem}`)
      const end = problems.length === 0 ? DONE : FAILED
      if (call.out.json) {
        call.out.data(page)
        return end
      }
      if (page.items.length === 0) call.out.note(`no dead letters in queue "${queue.name}"`)
      else {
        const rows = page.items.map((one) => [
          one.id,
          timeText(one.deadAt),
          one.errorClass,
          String(one.attempts.length),
          one.reason,
        ])
        for (const line of table(['ID', 'DEAD AT', 'CLASS', 'ATTEMPTS', 'REASON'], rows))
          call.out.line(line)
      }
      if (page.cursor !== null) call.out.note(`more: --cursor ${page.cursor}`)
      return end
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
