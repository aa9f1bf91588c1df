/** Composes the subgraphs into `supergraph.graphql`; with `--check` only says whether the file is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { composeServices } from '@apollo/composition'
import { parse } from 'graphql'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

const { supergraphSdl, errors } = composeServices(
  ['billing', 'inference', 'knowledge'].map((name) => ({ name, url: `http://${name}.subgraph`, typeDefs: parse(read(`${name}.graphql`)) })),
)
if (!supergraphSdl) {
  for (const error of errors ?? []) console.error(error.message)
  process.exit(1)
}
if (!process.argv.includes('--check')) {
  writeFileSync(new URL('supergraph.graphql', import.meta.url), supergraphSdl)
} else if (read('supergraph.graphql') !== supergraphSdl) {
  console.error('schema/supergraph.graphql is stale: run `npm run compose`')
  process.exit(1)
}
