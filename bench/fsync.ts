import { open } from 'node:fs/promises'
import { join } from 'node:path'

const WRITES = 200
/** Bytes that SQLite writes to its log for a small commit: a page and its header. */
const BYTES = Buffer.alloc(4_120, 1)

/**
 * Appends a page to a file in the folder and syncs it, again and again. Returns the times in ms: no durable write can
 * be faster.
 */
export async function fsyncTimes(folder: string): Promise<readonly number[]> {
  const file = await open(join(folder, 'fsync'), 'a')
  try {
    const times: number[] = []
    for (let i = 0; i < WRITES; i++) {
      const start = performance.now()
      await file.write(BYTES)
      await file.datasync()
      times.push(performance.now() - start)
    }
    return times
  } finally {
    await file.close()
  }
}
