import { expect, it } from 'vitest'
import { findImports, layersIn, problemsIn } from '../../.ci/layers.ts'

const PAGE = `## Layers

| Layer | Files | May import |
|---|---|---|
| ports | \`subgraphs/*/ports/**\` | nothing |
| use cases | \`subgraphs/*/use-cases/**\` | ports |
| adapters | \`subgraphs/*/adapters/**\` | ports (types) |
`
const PORT = 'subgraphs/a/ports/store.ts'
const USE_CASE = 'subgraphs/a/use-cases/put.ts'
const ADAPTER = 'subgraphs/a/adapters/sqlite/store.ts'

function problems(files: Readonly<Record<string, string>>): readonly string[] {
  // Each arrow of the table is used once, so that only the case's own problem is left.
  const all = {
    [PORT]: '',
    [USE_CASE]: "import { a } from '../ports/store.ts'",
    [ADAPTER]: "import type { A } from '../../ports/store.ts'",
    ...files,
  }
  return problemsIn(
    layersIn(PAGE),
    Object.keys(all),
    Object.entries(all).flatMap(([file, code]) => findImports(file, code)),
  )
}

for (const { name, files, expected } of [
  { name: 'allows the imports of the table', files: {}, expected: [] },
  {
    name: 'refuses an import outside the table',
    files: { [USE_CASE]: "import type { A } from '../ports/store.ts'\nexport * from '../adapters/sqlite/store.ts'" },
    expected: [`${USE_CASE} (use cases) imports ${ADAPTER} (adapters).`],
  },
  {
    name: 'refuses an import inside a function',
    files: { [PORT]: "export const later = () => import('../adapters/sqlite/store.ts')" },
    expected: [`${PORT} (ports) imports ${ADAPTER} (adapters).`],
  },
  {
    name: 'refuses a value import where only types are allowed',
    files: { [ADAPTER]: "import { type A, b } from '../../ports/store.ts'" },
    expected: [`${ADAPTER} (adapters) imports values of ${PORT} (ports), where only types are allowed.`],
  },
  {
    name: 'refuses test helpers',
    files: { [PORT]: "import { fake } from '../test-support/fake.ts'" },
    expected: [`${PORT} imports subgraphs/a/test-support/fake.ts, which is for tests only.`],
  },
  {
    name: 'refuses another subgraph',
    files: { 'subgraphs/b/use-cases/get.ts': "import type { A } from '../../a/use-cases/put.ts'" },
    expected: [`subgraphs/b/use-cases/get.ts imports ${USE_CASE} of another subgraph.`],
  },
  {
    name: 'refuses a file outside all layers',
    files: { 'subgraphs/a/other/x.ts': '' },
    expected: ['subgraphs/a/other/x.ts belongs to no layer.'],
  },
  {
    name: 'refuses an unused row',
    files: { [ADAPTER]: '' },
    expected: ['No file needs adapters -> ports: take it out of the table.'],
  },
  {
    name: 'refuses a value cycle of directories, even without a cycle of files',
    files: {
      'subgraphs/a/use-cases/x/one.ts': "import { y } from '../y/two.ts'",
      'subgraphs/a/use-cases/y/two.ts': '',
      'subgraphs/a/use-cases/y/three.ts': "import { x } from '../x/one.ts'",
    },
    expected: [
      "Folders need each other's values in a circle:\n" +
        '  subgraphs/a/use-cases/x/one.ts imports subgraphs/a/use-cases/y/two.ts\n' +
        '  subgraphs/a/use-cases/y/three.ts imports subgraphs/a/use-cases/x/one.ts',
    ],
  },
  {
    name: 'allows a type cycle',
    files: {
      'subgraphs/a/use-cases/x/one.ts': "import { y } from '../y/two.ts'",
      'subgraphs/a/use-cases/y/two.ts': "import type { X } from '../x/one.ts'",
    },
    expected: [],
  },
]) {
  it(name, () => expect(problems(files)).toEqual(expected))
}
