import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readOpenApi } from '../../../rest-adapter/http/openapi.ts'
import { FORMAT_LIST } from './media-types.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

it.each([
  ['docs/guide/formats.md', read('docs/guide/formats.md')],
  ['the OpenAPI document', JSON.stringify(readOpenApi().document)],
  ['schema/knowledge.graphql', read('schema/knowledge.graphql')],
])('%s lists the supported formats', (_name, text) => {
  expect(text.replaceAll(/\s+/g, ' ')).toContain(FORMAT_LIST)
})
