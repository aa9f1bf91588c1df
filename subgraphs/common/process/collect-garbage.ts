/**
 * Has V8 collect this thread's garbage soon. After a start half of the heap is garbage, which an idle process would
 * keep. Does nothing in a Node without `--expose-gc`.
 */
export function collectGarbage(): void {
  void globalThis.gc?.({ type: 'major', execution: 'async' })
}

/**
 * Frees what this thread has made a moment ago and dropped, at once: large buffers would otherwise lie in memory until
 * the next collection, between those that stay. Does nothing in a Node without `--expose-gc`.
 */
export function collectRecentGarbage(): void {
  globalThis.gc?.({ type: 'minor', execution: 'sync' })
}
