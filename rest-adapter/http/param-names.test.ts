import { expect, it } from 'vitest'
import { restParam } from './param-names.ts'

for (const { param, names = {}, expected } of [
  { param: 'input.embeddingModel', expected: 'embedding_model' },
  { param: 'embeddingModel', expected: 'embedding_model' },
  { param: 'input.name', names: { name: 'file_name' }, expected: 'file_name' },
  { param: 'input.request.messages[0].content', expected: 'messages[0].content' },
  { param: 'messages[0].imageUrl', expected: 'messages[0].imageUrl' },
  { param: 'input.filter.filters[1].value', expected: 'filter.filters[1].value' },
  { param: 'filter.since', names: { 'filter.since': 'since' }, expected: 'since' },
  { param: 'input.modelAllowlist[3]', expected: 'model_allowlist[3]' },
  { param: 'input', expected: 'input' },
  { param: 'constructor', expected: 'constructor' },
]) {
  it(`maps ${param} to ${expected}`, () => expect(restParam(param, names)).toBe(expected))
}
