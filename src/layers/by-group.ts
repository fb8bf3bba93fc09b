/**
 * Does something for each group of a batch, side by side, and answers in the order of the batch. `act` is told whether its group is all
 * there is.
 */
export async function byGroup<Item, Key, Outcome>(
  batch: readonly Item[],
  keyOf: (item: Item) => Key,
  act: (key: Key, some: readonly Item[], isAll: boolean) => Promise<readonly Outcome[]>,
): Promise<readonly Outcome[]> {
  const groups = Map.groupBy(batch.entries(), ([, item]) => keyOf(item))
  const outcomes = new Array<Outcome>(batch.length)
  await Promise.all(
    [...groups].map(async ([key, places]) => {
      const some = places.map(([, item]) => item)
      const answers = (await act(key, some, groups.size === 1)).values()
      for (const [at] of places) {
        const { done, value } = answers.next()
        if (!done) outcomes[at] = value
      }
    }),
  )
  return outcomes
}
