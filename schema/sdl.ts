import { readFileSync } from 'node:fs'

/** Returns the SDL of a subgraph or of the supergraph. */
export function readSdl(name: 'billing' | 'inference' | 'knowledge' | 'supergraph'): string {
  return readFileSync(new URL(`${name}.graphql`, import.meta.url), 'utf8')
}
