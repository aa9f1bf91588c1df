import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The folder in a data folder where a restore puts the files together. */
export const restoringFolder = (dataDirectory: string) => join(dataDirectory, 'restoring')

/** The file that is there from before the first file is placed until the last one is. */
export const unfinishedMark = (dataDirectory: string) => join(restoringFolder(dataDirectory), 'unfinished')

/** @throws {Error} a restore into this data folder is under way, or was interrupted */
export function refuseHalfRestored(dataDirectory: string): void {
  if (existsSync(unfinishedMark(dataDirectory)))
    throw new Error(`A restore into ${dataDirectory} has not ended. Let it end, or run \`kis restore\` again.`)
}
