import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The file that is in a data folder from before a copy puts anything into it until all is there and compared. */
export const copyingMark = (dataDirectory: string) => join(dataDirectory, 'copying')

/** @throws {Error} a copy into this data folder is under way, or was interrupted */
export function refuseHalfCopied(dataDirectory: string): void {
  if (existsSync(copyingMark(dataDirectory)))
    throw new Error(`A copy into ${dataDirectory} has not ended. Let it end, or run \`kis copy\` again.`)
}
