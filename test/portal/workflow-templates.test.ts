import { expect, it } from 'vitest'
import { DEFINITIONS, TEMPLATES } from '../../portal/web/src/pages/workflows/rules/templates.ts'
import { workflowDefinition } from '../../subgraphs/inference/domain/workflows/definition.ts'

it.each(TEMPLATES)('the service accepts the template %s', (name) => {
  const definition = DEFINITIONS[name].create({ model: 'extractive', collection: 'col_1' })
  expect(workflowDefinition(definition, 'definition')).toEqual(definition)
})
