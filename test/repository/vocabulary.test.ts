import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parseAst } from 'vitest/node'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Words that docs/vocabulary.md refuses in any name. Those that are right in some places, such as `answer`, are not here. */
const REFUSED = new Set(
  ['asked', 'damaged', 'dearest', 'door', 'doors', 'foreign', 'given', 'kept', 'lasting', 'lateness', 'made', 'mend', 'mended', 'passage']
    .concat(['passages', 'picture', 'pictures', 'reckon', 'sound', 'standstill', 'stranger', 'strangers', 'suspect'])
    .concat(['suspects', 'told']),
)
/** Names that stay, and why. */
const ALLOWED: Readonly<Record<string, string>> = {
  EMBED_PASSAGES: 'a field of the schema',
  RERANK_PASSAGES: 'a field of the schema',
  embedPassages: 'a field of the schema',
  rerankPassages: 'a field of the schema',
  passagePrefix: 'a passage is what a model of the E5 family embeds, beside a query',
  KeptRecords: 'a type of the schema',
  sound: 'what a letter sounds like',
}

interface Node {
  readonly type?: string
  readonly name?: unknown
  readonly [field: string]: unknown
}

/** The fields of each kind of node in which a name is declared. Members of types and objects may be wire names. */
const DECLARING: Readonly<Record<string, readonly string[]>> = {
  VariableDeclarator: ['id'],
  FunctionDeclaration: ['id', 'params'],
  FunctionExpression: ['params'],
  ArrowFunctionExpression: ['params'],
  ClassDeclaration: ['id'],
  MethodDefinition: ['key'],
  PropertyDefinition: ['key'],
  TSInterfaceDeclaration: ['id'],
  TSTypeAliasDeclaration: ['id'],
}

/** The names that a file declares. */
function declaredNames(file: string): readonly string[] {
  const names: string[] = []
  /** The names of a pattern: `{ a: b = c, d, ...rest }` chooses `b` and `rest`; `d` is the name of a member. */
  const bind = (node: Node | null | undefined): void => {
    if (!node) return
    if (node.type === 'Identifier' || node.type === 'PrivateIdentifier') names.push(String(node.name))
    else if (node.type === 'ObjectPattern')
      for (const each of node.properties as Node[]) bind((each.shorthand ? null : (each.value ?? each)) as Node)
    else if (node.type === 'ArrayPattern') for (const each of node.elements as Node[]) bind(each)
    else if (node.type === 'AssignmentPattern') bind(node.left as Node)
    else if (node.type === 'RestElement') bind(node.argument as Node)
    else if (node.type === 'TSParameterProperty') bind(node.parameter as Node)
  }
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type = '' } = node as Node
    for (const field of DECLARING[type] ?? []) for (const each of [(node as Node)[field]].flat()) bind(each as Node)
    for (const value of Object.values(node)) visit(value)
  }
  visit(parseAst(readFileSync(file, 'utf8'), { lang: file.endsWith('x') ? 'tsx' : 'ts' }))
  return names
}

const wordsOf = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[\s_]/)

describe('Vocabulary', () => {
  const files = globSync('{.ci,bench,cli,gateway,portal,rest-adapter,schema,subgraphs}/**/*.{ts,tsx}', { cwd: ROOT }).filter(
    (file) => !/\.test\.tsx?$|\.d\.ts$|\/(?:dist|node_modules|__fixtures__|generated)\/|generated\.ts$/.test(file),
  )

  it('refuses names with words that the field does not use', () => {
    const found = files.flatMap((file) => [
      ...new Set(
        declaredNames(`${ROOT}/${file}`)
          .filter((name) => !(name in ALLOWED) && wordsOf(name).some((word) => REFUSED.has(word)))
          .map((name) => `${file}: ${name}`),
      ),
    ])
    expect(found).toEqual([])
  })

  it('refuses files and directories with such words', () => {
    expect(files.filter((file) => file.split(/[/.-]/).some((word) => REFUSED.has(word)))).toEqual([])
  })
})
