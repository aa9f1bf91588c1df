import { servingFiles } from '../thread-calls.ts'

/** Counts from the length of the file's name. A batch has three calls at most. */
export const call = servingFiles((file) => {
  let count = file.length
  let batches = 0
  return {
    handlers: {
      next: () => count++,
      batches: () => batches,
      exit: () => process.exit(3),
      fail() {
        throw new RangeError('no number')
      },
    },
    batch: {
      maxCalls: 3,
      around(run) {
        batches += 1
        run()
      },
    },
    close: () => undefined,
  }
})
