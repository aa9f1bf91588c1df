import { anyObject, ERROR, operation, string } from './build.ts'

export const getOpenApi = operation('getOpenApi', 'GET', '/v1/openapi.json', {
  tag: 'Reference',
  summary: 'Get this API description as JSON',
  responses: { 200: { description: 'An OpenAPI 3.1 document.', json: anyObject('The document.') } },
  errors: { '4XX': ERROR },
  isPublic: true,
})

export const getWorkflowSchema = operation('getWorkflowSchema', 'GET', '/v1/workflow.schema.json', {
  tag: 'Reference',
  summary: 'Get the JSON Schema of workflow definitions',
  responses: { 200: { description: 'A JSON Schema (2020-12).', content: { 'application/schema+json': anyObject('The schema.') } } },
  errors: { '4XX': ERROR },
  isPublic: true,
})

export const getReferencePage = operation('getReferencePage', 'GET', '/docs', {
  tag: 'Reference',
  summary: 'Get this API reference as a web page',
  description: 'The words of the page are English or Arabic, by `?lang=en` or `?lang=ar`, or else by your browser.',
  responses: { 200: { description: 'The web page.', content: { 'text/html': string() } } },
  errors: { '4XX': ERROR },
  isPublic: true,
})
