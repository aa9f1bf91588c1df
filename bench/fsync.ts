import { open } from 'node:fs/promises'
import { join } from 'node:path'

const WRITES = 200
/** What a small commit of SQLite's log writes: a page and its header. */
const BYTES = Buffer.alloc(4_120, 1)

/** In ms: appending a page to a file of the folder and syncing it, time after time. Below that no durable write can be. */
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
