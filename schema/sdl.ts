import { readFileSync } from 'node:fs'

export function readSdl(name: 'billing' | 'inference' | 'knowledge' | 'supergraph'): string {
  return readFileSync(new URL(`${name}.graphql`, import.meta.url), 'utf8')
}
