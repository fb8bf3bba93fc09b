/** Asks one question at a time; who comes meanwhile shares the next one, and is answered by none that was asked before. */
export interface Questions {
  ask(): Promise<void>
}

export function openQuestions(put: () => Promise<void>): Questions {
  let asked: Promise<void> | undefined
  let next: Promise<void> | undefined

  const putNow = (): Promise<void> => {
    const mine = put().finally(() => {
      if (asked === mine) asked = undefined
    })
    asked = mine
    return mine
  }
  return {
    ask() {
      if (asked === undefined) return putNow()
      next ??= asked
        .catch(() => {})
        .then(() => {
          next = undefined
          return putNow()
        })
      return next
    },
  }
}
