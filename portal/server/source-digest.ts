import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

/** Files that are no sources: the output, the server, tests, and files of editors. */
const NO_SOURCE = /^(?:dist|server)(?:[-/]|$)|(?:^|\/)\.|\.test\.tsx?$/

/**
 * Returns a digest of all sources of the bundle: the portal's folder, and the versions of the packages. A bundle with
 * another digest is stale.
 */
export async function digestSources(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).split(sep).join('/'))
    .filter((name) => !NO_SOURCE.test(name))
    .toSorted()
  const hash = createHash('sha256')
  for (const name of [...names, '../package-lock.json']) {
    const bytes = await readFile(join(folder, name)).catch((error) => {
      if (error.code === 'ENOENT') return Buffer.alloc(0)
      throw error
    })
    hash.update(`${name}\n${bytes.length}\n`).update(bytes)
  }
  return hash.digest('hex')
}
