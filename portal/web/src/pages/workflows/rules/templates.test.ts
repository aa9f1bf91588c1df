import { expect, it } from 'vitest'
import schema from '../../../../../../schema/workflow.schema.json'
import { findProblems } from './problems.ts'
import { DEFINITIONS, TEMPLATES } from './templates.ts'

it.each(TEMPLATES)('the template %s matches the published schema', (name) => {
  expect(findProblems(schema, DEFINITIONS[name].create({ model: 'extractive', collection: 'col_1' }))).toEqual([])
})
