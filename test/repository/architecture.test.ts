import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Paths from the root of the project, in code; `<name>`, `*` and `...` stand for something that is not there. */
const PATH = /`((?:schema|subgraphs|rest-adapter|gateway|cli|test|bench|models|docs)\/[\w./-]*)`/g

describe.each(['docs/architecture.md', 'CONTRIBUTING.md'])('%s', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8')

  it('links to existing files', () => {
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)/g)].map(([, target]) => target!)
    expect(targets.length).toBeGreaterThan(20)
    expect(targets.filter((target) => !existsSync(join(ROOT, dirname(page), target)))).toEqual([])
  })

  it('names existing directories and files', () => {
    const paths = [...text.matchAll(PATH)].map(([, path]) => path!).filter((path) => !path.includes('acme'))
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })
})

it('docs/style.md shows the current code', () => {
  const text = readFileSync(join(ROOT, 'docs/style.md'), 'utf8')
  const section = text.split('## An example of each kind of file')[1]!.split('\n## ')[0]!
  const excerpts = [...section.matchAll(/```ts\n(.*?)\n```/gs)].map(([, code]) => code!)
  const files = [
    'subgraphs/knowledge/ports/blob-store.ts',
    'subgraphs/inference/domain/engines/residency.ts',
    'subgraphs/billing/resolvers/query.ts',
    'rest-adapter/routes/money/wallet.ts',
  ]
  expect(excerpts).toHaveLength(files.length)
  for (const [index, file] of files.entries()) expect(readFileSync(join(ROOT, file), 'utf8')).toContain(excerpts[index])
})
