import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { FORMAT_LIST } from './media-types.ts'

it.each(['docs/guide/formats.md', 'schema/openapi.yaml', 'schema/knowledge.graphql'])('%s lists the supported formats', (path) => {
  expect(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8').replaceAll(/\s+/g, ' ')).toContain(FORMAT_LIST)
})
