import { readFileSync } from 'node:fs'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

/**
 * A subgraph's SDL, and that of the schema that it executes, with what the federation specification adds and without
 * descriptions.
 */
export function readSubgraph(name: string): { readonly sdl: string; readonly executableSdl: string } {
  return { sdl: read(`${name}.graphql`), executableSdl: read(`generated/${name}.graphql`) }
}

/** The supergraph, and what `npm run compose` has made of it: the schema that clients see, and plans. */
export function readSupergraph() {
  return {
    supergraphSdl: read('supergraph.graphql'),
    composed: { apiSdl: read('generated/gateway.graphql'), plans: JSON.parse(read('generated/plans.json')) },
  }
}
