import type { Call, OptionRule } from './command.ts'
import { table } from './terminal-text.ts'
import { wholeNumber } from './whole-number.ts'

/** The options of a command that lists page by page. */
export const pagingOptions: Readonly<Record<'limit' | 'cursor', OptionRule>> = {
  limit: { value: '<n>', help: '1 to 500; default 50' },
  cursor: { value: '<cursor>', help: 'go on where the page before ended' },
}

export interface PageAsked {
  readonly limit?: number
  readonly cursor?: string
}

/** @throws UsageError when the limit is none. */
export function pageAsked(call: Call): PageAsked {
  const limit = wholeNumber('--limit', call.value('limit'), { min: 1, max: 500 })
  const cursor = call.value('cursor')
  return {
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  }
}

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly cursor: string | null
}

export interface PageText<Item> {
  /** What is said when there is nothing. */
  readonly nothing: string
  readonly head: readonly string[]
  readonly row: (item: Item) => readonly string[]
}

export function showPage<Item>(
  { out }: Call,
  page: Page<Item>,
  { nothing, head, row }: PageText<Item>,
): void {
  if (out.json) {
    out.data(page)
    return
  }
  if (page.items.length === 0) out.note(nothing)
  else for (const line of table(head, page.items.map(row))) out.line(line)
  if (page.cursor !== null) out.note(`more: --cursor ${page.cursor}`)
}
