import { describe, type TestContext, test } from 'node:test'

type Body = (t: TestContext) => Promise<void>

/** Tests of one file that do not disturb each other. */
export interface SideBySide {
  /** In place of that of node:test. */
  test(title: string, body: Body): void
  /** Once all are there: so many of them go on at a time. */
  run(atOnce: number): void
}

export function sideBySide(name: string): SideBySide {
  const own: { readonly title: string; readonly body: Body }[] = []
  return {
    test: (title, body) => void own.push({ title, body }),
    run: (concurrency) => {
      describe(name, { concurrency }, () => {
        for (const { title, body } of own) test(title, body)
      })
    },
  }
}
