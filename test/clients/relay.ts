import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GraphQLSchema, printSchema } from 'graphql'
import { type Modules, modulesWith, run } from '../support/installed.ts'
import { OPERATIONS, SCALARS } from './operations.ts'

const VERSION = '21.0.1'
/** What only Relay's compiler understands: what it refetches by `node`, and a list that it keeps as one. */
const REFETCHED: readonly string[] = [
  `fragment Home_document on Document @refetchable(queryName: "HomeDocumentQuery") { name status }`,
  `fragment Home_documents on Collection @refetchable(queryName: "HomeDocumentsQuery")
    @argumentDefinitions(count: { type: "Int", defaultValue: 10 }, cursor: { type: "String" }) {
      documents(first: $count, after: $cursor) @connection(key: "Home_documents") { totalCount edges { node { ...Home_document } } } }`,
]

/**
 * The `node_modules` with Relay, installed once a machine; or why there is none. It is no dependency of the project:
 * its compiler is 120 MB large, with a program for each platform.
 */
export const installRelay = (): Promise<Modules> => modulesWith({ 'relay-compiler': VERSION, 'relay-runtime': VERSION })

/** Compiles the operations in the folder, which gets Relay's `node_modules`. Gives the manifest of persisted queries. */
export async function compileRelay(folder: string, modules: string, schema: GraphQLSchema): Promise<Readonly<Record<string, string>>> {
  symlinkSync(modules, join(folder, 'node_modules'))
  const inline = OPERATIONS.map((text) => text.replace('on Collection {', 'on Collection @inline {')).concat(REFETCHED)
  const texts = {
    'schema.graphql': printSchema(schema),
    'Home.ts': `import { graphql } from 'relay-runtime'\n${inline.map((text) => `graphql\`${text}\``).join('\n')}\n`,
    'persisted.json': '{}',
    'relay.config.json': JSON.stringify({
      src: '.',
      schema: 'schema.graphql',
      language: 'typescript',
      eagerEsModules: true,
      customScalarTypes: SCALARS,
      persistConfig: { file: 'persisted.json', algorithm: 'SHA256' },
    }),
  }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  await run(process.execPath, [join(modules, 'relay-compiler/cli.js'), 'relay.config.json'], { cwd: folder })
  return JSON.parse(readFileSync(join(folder, 'persisted.json'), 'utf8')) as Record<string, string>
}
