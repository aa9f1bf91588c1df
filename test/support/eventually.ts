/**
 * Waits until the condition holds, looking every 5 ms, and after a while less often, up to every 50 ms.
 * @throws {Error} it does not within `timeoutMs`.
 */
export async function eventually(condition: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const startMs = Date.now()
  while (!(await condition())) {
    const waitedMs = Date.now() - startMs
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(waitedMs / 20, 5), 50)))
  }
}
