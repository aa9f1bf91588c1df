import { serveWorker, workerInput } from '../worker-rpc.ts'

const { from, fails = false } = workerInput<{ readonly from: number; readonly fails?: boolean }>()
if (fails) throw new Error('this code does not load')
let count = from

serveWorker({
  next: () => count++,
  die: () => process.exit(3),
})
