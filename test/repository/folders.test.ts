import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** More than this do not fit on one screen of a file list. */
const MAX_FILES = 25
/** Decisions are one numbered list, with an index page. */
const LISTS = ['docs/decisions']
/** Folders below a part of `subgraphs/`. */
const MAX_DEPTH = 4

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .trimEnd()
  .split('\n')

it('no directory has more than 25 files', () => {
  const counts = new Map<string, number>()
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  expect([...counts].filter(([folder, count]) => count > MAX_FILES && !LISTS.includes(folder))).toEqual([])
})

it('no subgraph has directories more than four levels deep', () => {
  const folders = files.filter((file) => file.startsWith('subgraphs/')).map(dirname)
  expect(folders.filter((folder) => folder.split('/').length - 2 > MAX_DEPTH)).toEqual([])
})
