import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { ERRORS } from './errors.ts'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

describe('GraphQL contract', () => {
  it.each(['billing', 'inference', 'knowledge'])('describes every type, field, input and value of %s', (name) => {
    const bare = parse(read(`${name}.graphql`)).definitions.flatMap((node) => {
      if (!('name' in node) || !node.name || node.kind === 'DirectiveDefinition') return []
      const members = 'fields' in node ? (node.fields ?? []) : 'values' in node ? (node.values ?? []) : []
      const type = node.name.value
      return [
        ...('description' in node && node.description ? [] : [type]),
        ...members.filter((member) => !('description' in member && member.description)).map((member) => `${type}.${member.name.value}`),
      ]
    })
    expect(bare).toEqual([])
  })

  it('the supergraph in the repository is composed of the current subgraphs', async () => {
    await promisify(execFile)(process.execPath, [fileURLToPath(new URL('compose.ts', import.meta.url)), '--check'])
  })

  it('documents every error code in docs/errors.md', () => {
    const page = read('../docs/errors.md')
    const unnamed = Object.keys(ERRORS).filter((code) => !page.includes(`\`${code}\``))
    expect(unnamed).toEqual([])
  })
})
