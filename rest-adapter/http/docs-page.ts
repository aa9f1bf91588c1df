import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { ERRORS } from '../../schema/errors.ts'
import { STYLE, WALK_THROUGH } from './docs-text.ts'
import type { DocumentedEvent, DocumentedOperation, OpenApi, Schema } from './openapi.ts'

/** The page runs no script and loads nothing. */
const CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** How deep nested objects are shown. The contract's own go to 4. */
const MAX_DEPTH = 4

/** Serves `/docs`, `/v1/openapi.json`, `/v1/workflow.schema.json` and `/`, without a key. */
export function registerDocs(app: FastifyInstance, openapi: OpenApi): void {
  const json = JSON.stringify(openapi.document)
  const page = renderPage(openapi)
  app.get('/v1/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(json))
  const workflow = readFileSync(new URL('../../schema/workflow.schema.json', import.meta.url), 'utf8')
  app.get('/v1/workflow.schema.json', async (_request, reply) => reply.type('application/schema+json; charset=utf-8').send(workflow))
  app.get('/docs', async (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', CONTENT_SECURITY_POLICY).send(page),
  )
  app.get('/', async (_request, reply) => reply.redirect('/docs', 302))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** Writes a description as HTML: paragraphs, and code for what is in backticks. */
function prose(text = ''): string {
  const inline = (part: string) => escaped(part).replace(/`([^`]+)`/g, '<code>$1</code>')
  return text
    .trim()
    .split(/\n{2,}/)
    .map((paragraph) => `<p>${inline(paragraph)}</p>`)
    .join('\n')
}

function cells(...contents: readonly string[]): string {
  return `<tr>${contents.map((content) => `<td>${content}</td>`).join('')}</tr>`
}

function table(heads: readonly string[], rows: readonly string[]): string {
  if (rows.length === 0) return ''
  return `<div class="wide"><table><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr>\n${rows.join('\n')}</table></div>`
}

/** The schema with its references resolved and its `allOf` merged. */
function flat(schema: Schema, openapi: OpenApi): Schema {
  const own = openapi.resolve(schema)
  if (!own.allOf) return { ...own, ...(schema.description !== undefined && { description: schema.description }) }
  const parts = own.allOf.map((part) => flat(part, openapi))
  return {
    ...own,
    type: 'object',
    properties: Object.assign({}, ...parts.map(({ properties }) => properties), own.properties),
    required: [...parts.flatMap(({ required = [] }) => required), ...(own.required ?? [])],
  }
}

/** Describes a value in words: `integer, 1 to 100, default 20`. */
function describeKind(schema: Schema): string {
  const { type, minimum, maximum, maxLength, maxItems } = schema
  const limits = [
    minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : minimum !== undefined ? `at least ${minimum}` : '',
    maxLength !== undefined ? `at most ${maxLength} characters` : '',
    maxItems !== undefined ? `at most ${maxItems}` : '',
    schema.default !== undefined ? `default ${schema.default}` : '',
  ]
  const values = schema.enum ?? (schema.const === undefined ? [] : [schema.const])
  const kind =
    values.length > 0 ? values.map((value) => `<code>${escaped(String(value))}</code>`).join(' ') : [type ?? 'any'].flat().join(' or ')
  return [kind, ...limits.filter(Boolean)].join(', ')
}

/** One row for each field. The fields of an inner object follow it, with its path before their names. */
function fieldRows(schema: Schema, openapi: OpenApi, path = '', depth = 0): readonly string[] {
  const { properties = {}, required = [] } = flat(schema, openapi)
  return Object.entries(properties).flatMap(([name, property]) => {
    const field = flat(property, openapi)
    const items = field.items && flat(field.items, openapi)
    const inner =
      depth + 1 >= MAX_DEPTH
        ? []
        : items?.properties
          ? fieldRows(items, openapi, `${path}${name}[].`, depth + 1)
          : fieldRows(field, openapi, `${path}${name}.`, depth + 1)
    const label = `<code>${escaped(path + name)}</code>${required.includes(name) ? ' <b title="always there">•</b>' : ''}`
    return [cells(label, describeKind(field), prose(field.description)), ...inner]
  })
}

function operationHtml(method: string, path: string, operation: DocumentedOperation, openapi: OpenApi): string {
  const parameters = operation.parameters.map(({ name, in: where, description, schema }) =>
    cells(`<code>${escaped(name)}</code>`, `${where}, ${describeKind(flat(schema, openapi))}`, prose(description)),
  )
  const { 'application/json': json, 'multipart/form-data': form } = operation.requestBody?.content ?? {}
  const body = (json ?? form)?.schema
  const answers = Object.entries(operation.responses)
    .filter(([status]) => status !== 'default')
    .map(([status, { description, content = {} }]) => {
      const schema = content['application/json']?.schema
      return `<h4>${status} ${escaped(description)}</h4>${schema ? table(['Field', 'Kind', 'Meaning'], fieldRows(schema, openapi)) : ''}`
    })
  return `<details id="${operation.operationId}"><summary><span class="method">${method}</span> <code>${escaped(path)}</code> <span>${escaped(operation.summary)}</span></summary>
${prose(operation.description)}
${parameters.length > 0 ? `<h4>Parameters</h4>${table(['Name', 'Kind', 'Meaning'], parameters)}` : ''}
${body ? `<h4>${form ? 'Form' : 'Body'}</h4>${table(['Field', 'Kind', 'Meaning'], fieldRows(body, openapi))}` : ''}
${answers.join('\n')}
</details>`
}

function eventHtml(type: string, { when, subject, subscription, cursor, data }: DocumentedEvent, openapi: OpenApi): string {
  return `<details id="event-${type}"><summary><code>${escaped(type)}</code> <span>${escaped(when)}</span></summary>
${prose(`Subject (the events of one subject arrive in order): ${subject}`)}
${subscription === null ? '' : prose(`GraphQL subscription: \`${subscription}\`. Its cursor: ${cursor}`)}
<h4>Data</h4>${table(['Field', 'Kind', 'Meaning'], fieldRows(data, openapi))}</details>`
}

function renderPage(openapi: OpenApi): string {
  const { info, tags } = openapi.document
  const sections = tags.map(({ name, description }) => {
    const operations = openapi.operations.filter(({ operation }) => operation.tags.includes(name))
    return `<section><h2 id="${name}">${name}</h2>${prose(description)}
${operations.map(({ method, path, operation }) => operationHtml(method, path, operation, openapi)).join('\n')}</section>`
  })
  const errors = Object.entries(ERRORS).map(([code, { status, type, retry }]) =>
    cells(`<code>${code}</code>`, String(status), type, retry ? 'yes' : 'no'),
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>${escaped(info.title)}</title><style>${STYLE}</style></head>
<body><main>
<h1>${escaped(info.title)}</h1>
<nav>${[...tags.map(({ name }) => name), 'Events', 'Errors'].map((name) => `<a href="#${name}">${name}</a>`).join(' ')} <a href="/v1/openapi.json">openapi.json</a> <a href="/v1/workflow.schema.json">workflow.schema.json</a></nav>
${prose(info.description)}
${WALK_THROUGH.map(({ title, command }) => `<h3>${escaped(title)}</h3><pre>${escaped(command)}</pre>`).join('\n')}
${sections.join('\n')}
<section><h2 id="Events">Events</h2>
${prose('Webhooks send these events with the body `{"type", "timestamp", "data"}`. GraphQL subscriptions send the same, except `ping`.')}
${Object.entries(openapi.events)
  .map(([type, event]) => eventHtml(type, event, openapi))
  .join('\n')}</section>
<section><h2 id="Errors">Errors</h2>
${prose('Every error has the body `{"error": {"message", "type", "param", "code"}}`. In the tables above, a field marked • is always present.')}
${table(['Code', 'Status', 'Type', 'Retry'], errors)}</section>
</main></body></html>
`
}
