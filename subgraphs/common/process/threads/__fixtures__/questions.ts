import { answering } from '../thread-calls.ts'

let answeredCount = 0

/** `count` returns the number of calls served. The others exceed the limits, or end the thread. */
export const call = answering((question: 'count' | 'throw' | 'spin' | 'fill' | 'exit') => {
  if (question === 'throw') throw Object.assign(new RangeError('no answer'), { data: { code: 7 } })
  if (question === 'exit') process.exit(3)
  if (question === 'spin') for (;;);
  if (question === 'fill') for (const all: unknown[] = []; ; ) all.push({ number: all.length })
  return ++answeredCount
})
