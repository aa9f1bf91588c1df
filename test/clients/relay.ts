import { execFile } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type GraphQLSchema, printSchema } from 'graphql'
import { OPERATIONS, SCALARS } from './operations.ts'

const VERSION = '21.0.1'
const PACKAGES = [`relay-compiler@${VERSION}`, `relay-runtime@${VERSION}`]
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-relay')
/** It takes 5 s; where the registry does not answer, Relay is skipped. */
const INSTALL_MS = 120_000
const INSTALL = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=15000']

/** What only Relay's compiler understands: what it refetches by `node`, and a list that it keeps as one. */
const REFETCHED: readonly string[] = [
  `fragment Home_document on Document @refetchable(queryName: "HomeDocumentQuery") { name status }`,
  `fragment Home_documents on Collection @refetchable(queryName: "HomeDocumentsQuery")
    @argumentDefinitions(count: { type: "Int", defaultValue: 10 }, cursor: { type: "String" }) {
      documents(first: $count, after: $cursor) @connection(key: "Home_documents") { totalCount edges { node { ...Home_document } } } }`,
]

const run = promisify(execFile)

/**
 * The `node_modules` with Relay, installed once a machine; or why there is none. It is no dependency of the project:
 * its compiler is 120 MB large, with a program for each platform.
 */
export async function installRelay(): Promise<{ readonly modules: string } | { readonly reason: string }> {
  const place = join(CACHE, VERSION)
  const modules = join(place, 'node_modules')
  if (existsSync(modules)) return { modules }
  // Made beside its place, and moved there whole: another run may be making it, too.
  const building = `${place}-${process.pid}`
  try {
    await mkdir(building, { recursive: true })
    await run('npm', [...INSTALL, '--prefix', building, ...PACKAGES], { cwd: building, timeout: INSTALL_MS })
    await rename(building, place)
    return { modules }
  } catch (error) {
    await rm(building, { recursive: true, force: true })
    if (existsSync(modules)) return { modules }
    return { reason: `Relay ${VERSION} cannot be installed here: ${(error as Error).message.split('\n')[0]}` }
  }
}

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
