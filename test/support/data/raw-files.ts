import { execFileSync } from 'node:child_process'

const COUNT = `
  const { readdirSync, readFileSync } = require('node:fs')
  const [folder, ...texts] = process.argv.slice(1)
  const found = {}
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(folder + '/' + name)
    for (const text of texts) {
      let count = 0
      for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) count++
      if (count > 0) (found[name] ??= {})[text] = count
    }
  }
  console.log(JSON.stringify(found))`

/**
 * Counts each text, as UTF-8, in the bytes of each file of the folder. Leaves out files without any of them. Reads in a
 * separate process: a process that closes a file loses its locks on it, including those of a store that it has open.
 */
export function rawCopies(folder: string, texts: readonly string[]): Readonly<Record<string, Readonly<Record<string, number>>>> {
  return JSON.parse(execFileSync(process.execPath, ['-e', COUNT, folder, ...texts], { encoding: 'utf8' }))
}
