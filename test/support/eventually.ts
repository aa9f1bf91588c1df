/**
 * Waits until the condition holds. Checks every 5 ms at first, and later less often, up to every 50 ms. Where the time
 * itself is tested, the test says `timeoutMs`; the default is for a slow and busy machine.
 * @throws {Error} if the condition does not hold within `timeoutMs`.
 */
export async function eventually(condition: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const startMs = Date.now()
  while (!(await condition())) {
    const waitedMs = Date.now() - startMs
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(waitedMs / 20, 5), 50)))
  }
}
