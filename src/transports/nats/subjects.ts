/** Whether one of a stream's subjects takes this one; `*` stands for one part, `>` for all that follow. */
export function takes(subjects: readonly string[], subject: string): boolean {
  return subjects.some((pattern) => {
    const wanted = pattern.split('.')
    const got = subject.split('.')
    for (const [at, part] of wanted.entries()) {
      if (part === '>') return got.length > at
      if (part !== '*' && part !== got[at]) return false
    }
    return wanted.length === got.length
  })
}
