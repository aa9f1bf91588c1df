/** Runs `places` items at a time. Returns the results in the order of the items. */
export async function inParallel<T, R>(items: readonly T[], concurrency: number, run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await run(items[i]!)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return results
}
