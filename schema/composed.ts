import { readFileSync } from 'node:fs'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

/**
 * A subgraph's SDL, and that of the schema that it executes, with what the federation specification adds and without
 * descriptions.
 */
export function readSubgraph(name: string): { readonly sdl: string; readonly executableSdl: string } {
  return { sdl: read(`${name}.graphql`), executableSdl: read(`generated/${name}.graphql`) }
}

export const readSupergraph = () => read('supergraph.graphql')
