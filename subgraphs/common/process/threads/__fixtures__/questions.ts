import { workerData } from 'node:worker_threads'
import { serveQuestions } from '../bounded-thread.ts'

const { begins } = workerData as { readonly begins: boolean | 'with too much memory' }
if (!begins) throw new Error('this code does not load')
if (begins !== true) for (const all: unknown[] = []; ; ) all.push({ number: all.length })

let answered = 0

/** `count`: how many it has answered. The others take what the limits do not allow, or end the thread. */
serveQuestions((question: 'count' | 'throw' | 'spin' | 'fill' | 'exit') => {
  if (question === 'throw') throw new RangeError('no answer')
  if (question === 'exit') process.exit(3)
  if (question === 'spin') for (;;);
  if (question === 'fill') for (const all: unknown[] = []; ; ) all.push({ number: all.length })
  return ++answered
})
