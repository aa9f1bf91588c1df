/**
 * Has V8 collect this thread's garbage soon. After a start half of the heap is garbage, which an idle process would
 * keep. Does nothing in a Node without `--expose-gc`.
 */
export function collectGarbage(): void {
  void globalThis.gc?.({ type: 'major', execution: 'async' })
}
