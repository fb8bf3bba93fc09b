/** Sends of an app that have begun and are not answered yet: the end of the app waits for them. */
export interface SendsUnderWay {
  /** The answer says that it has ended, or waits for what may take long; every call after the first does nothing. */
  begin(): () => void
  /** Resolves when all that had begun until now have ended. Those that begin later count for the next call. */
  ended(): Promise<void>
}

interface Round {
  open: number
  whenEmpty: (() => void) | undefined
}

export function sendsUnderWay(): SendsUnderWay {
  let round: Round = { open: 0, whenEmpty: undefined }
  let before: Promise<void> = Promise.resolve()
  return {
    begin: () => {
      const mine = round
      let isOver = false
      mine.open++
      return () => {
        if (isOver) return
        isOver = true
        mine.open--
        if (mine.open === 0) mine.whenEmpty?.()
      }
    },
    ended: () => {
      const mine = round
      if (mine.open === 0) return before
      round = { open: 0, whenEmpty: undefined }
      const earlier = before
      before = new Promise<void>((resolve) => {
        mine.whenEmpty = resolve
      }).then(() => earlier)
      return before
    },
  }
}
