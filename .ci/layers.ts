// Checks the imports of the product against the table "Layers" in docs/architecture.md, and that no folders import each
// other's values in a cycle. Run `node .ci/layers.ts`; it exits with code 1 and every problem. dependency-cruiser
// cannot do this: it reads TypeScript with the compiler's API, which TypeScript 7 does not have, and its other parser
// (swc) fails at the first `using`.
import { globSync, readFileSync } from 'node:fs'
import { extname, matchesGlob, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'vitest/node'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PRODUCT = '{schema,subgraphs,gateway,rest-adapter,portal,cli}/**/*.{ts,tsx,js}'
/** Tests and their helpers may import everything. */
const NOT_SHIPPED = /\.test\.tsx?$|\/test-support\/|\/__fixtures__\/|\.d\.ts$/

/** One row of the table. The first matching layer has the file. */
interface Layer {
  readonly name: string
  readonly globs: readonly string[]
  /** Names of the layers that its files may import, besides its own; `true`: types only. */
  readonly imports: ReadonlyMap<string, boolean>
}

interface Import {
  readonly from: string
  readonly to: string
  readonly typesOnly: boolean
}

/** @throws {Error} the page has no such table, or a row names a layer that has no row. */
export function layersIn(page: string): readonly Layer[] {
  const [, section = ''] = page.split(/^## Layers$/m)
  const rows = section.split(/^## /m)[0]!.matchAll(/^\| ([\w -]+) \| (`.*`) \| (.*) \|$/gm)
  const layers = [...rows].map(([, name, files, imports]) => ({
    name: name!,
    globs: [...files!.matchAll(/`([^`]+)`/g)].map(([, glob]) => glob!),
    imports: new Map(
      imports!
        .split(', ')
        .filter((each) => each !== 'nothing')
        .map((each) => [each.replace(' (types)', ''), each.endsWith(' (types)')]),
    ),
  }))
  if (layers.length === 0) throw new Error('docs/architecture.md has no table below "## Layers".')
  const names = new Set(layers.map(({ name }) => name))
  const unknown = layers.flatMap(({ imports }) => [...imports.keys()]).filter((name) => !names.has(name))
  if (unknown.length > 0) throw new Error(`The table "Layers" in docs/architecture.md has no row for ${unknown.join(', ')}.`)
  return layers
}

interface ImportNode {
  readonly type: string
  readonly source?: { readonly value?: unknown } | null
  readonly importKind?: string
  readonly exportKind?: string
  readonly specifiers?: readonly { readonly importKind?: string; readonly exportKind?: string }[]
}

function isTypesOnly({ importKind, exportKind, specifiers = [] }: ImportNode): boolean {
  if (importKind === 'type' || exportKind === 'type') return true
  return specifiers.length > 0 && specifiers.every((each) => each.importKind === 'type' || each.exportKind === 'type')
}

/** Returns the imports of other files of the project: statements, and `import()` of a plain string. */
export function findImports(file: string, code: string): readonly Import[] {
  const found: Import[] = []
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return
    const { type, source } = node as ImportNode
    if (/^(Import|Export\w*Declaration$)/.test(String(type)) && typeof source?.value === 'string' && source.value.startsWith('.'))
      found.push({ from: file, to: posix.join(posix.dirname(file), source.value), typesOnly: isTypesOnly(node as ImportNode) })
    for (const child of Object.values(node)) visit(child)
  }
  visit(parseAst(code, { lang: extname(file).slice(1) as 'ts' | 'tsx' | 'js' }))
  return found
}

/** Returns the part of the product that a file belongs to, such as `subgraphs/billing`; undefined: none. */
function findSubgraph(file: string): string | undefined {
  return /^subgraphs\/(?!common\/)[^/]+/.exec(file)?.[0]
}

/** Returns a sentence for each violation of the table. */
export function problemsIn(layers: readonly Layer[], files: readonly string[], imports: readonly Import[]): readonly string[] {
  const layerByFile = new Map(files.map((file) => [file, layers.find(({ globs }) => globs.some((glob) => matchesGlob(file, glob)))]))
  const homeless = files.filter((file) => !layerByFile.get(file)).map((file) => `${file} belongs to no layer.`)
  const wrong = imports.flatMap(({ from, to, typesOnly }) => {
    if (NOT_SHIPPED.test(to)) return [`${from} imports ${to}, which is for tests only.`]
    const [layer, other] = [layerByFile.get(from), layerByFile.get(to)]
    if (!layer || !other) return []
    const own = findSubgraph(from)
    if (own && findSubgraph(to) && findSubgraph(to) !== own) return [`${from} imports ${to} of another subgraph.`]
    if (layer === other) return []
    const allowed = layer.imports.get(other.name)
    if (allowed === undefined) return [`${from} (${layer.name}) imports ${to} (${other.name}).`]
    return allowed && !typesOnly ? [`${from} (${layer.name}) imports values of ${to} (${other.name}), where only types are allowed.`] : []
  })
  const used = new Set(imports.map(({ from, to }) => `${layerByFile.get(from)?.name} -> ${layerByFile.get(to)?.name}`))
  const arrows = layers.flatMap(({ name, imports }) => [...imports.keys()].map((other) => `${name} -> ${other}`))
  const unused = arrows.filter((arrow) => !used.has(arrow)).map((arrow) => `No file needs ${arrow}: take it out of the table.`)
  return [...homeless, ...wrong, ...unused, ...circlesIn(imports)]
}

/**
 * Returns a description of each import cycle. Every pair of folders that need each other's values, directly or through
 * others, is in one of them.
 */
function circlesIn(imports: readonly Import[]): readonly string[] {
  const next = new Map<string, Map<string, Import>>()
  for (const each of imports) {
    const [from, to] = [posix.dirname(each.from), posix.dirname(each.to)]
    if (each.typesOnly || from === to) continue
    if (!next.has(from)) next.set(from, new Map())
    next.get(from)!.set(to, each)
  }
  const reported = new Set<string>()
  return [...next.keys()].flatMap((start) => {
    const circle = reported.has(start) ? undefined : pathBack(next, start)
    if (!circle) return []
    for (const { from } of circle) reported.add(posix.dirname(from))
    return [`Folders need each other's values in a circle:${circle.map(({ from, to }) => `\n  ${from} imports ${to}`).join('')}`]
  })
}

/** Returns the shortest path from a folder back to itself. */
function pathBack(next: ReadonlyMap<string, ReadonlyMap<string, Import>>, start: string): readonly Import[] | undefined {
  const paths = new Map<string, readonly Import[]>([[start, []]])
  for (const [folder, path] of paths) {
    for (const [other, edge] of next.get(folder) ?? []) {
      if (other === start) return [...path, edge]
      if (!paths.has(other)) paths.set(other, [...path, edge])
    }
  }
  return undefined
}

if (import.meta.main) {
  const layers = layersIn(readFileSync(`${ROOT}/docs/architecture.md`, 'utf8'))
  const files = globSync(PRODUCT, { cwd: ROOT, exclude: ['portal/dist/**'] }).filter((file) => !NOT_SHIPPED.test(file))
  const imports = files.flatMap((file) => findImports(file, readFileSync(`${ROOT}/${file}`, 'utf8')))
  const problems = problemsIn(layers, files, imports)
  for (const problem of problems) console.error(problem)
  console.log(`${files.length} files, ${imports.length} imports, ${layers.length} layers, ${problems.length} problems`)
  process.exitCode = problems.length > 0 ? 1 : 0
}
