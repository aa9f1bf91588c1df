import { describe, expect, it } from 'vitest'
import { readOpenApi, type Schema } from '../../rest-adapter/http/openapi.ts'
import { restRoutes } from '../../rest-adapter/main.ts'
import { ERRORS, GRAPHQL_CODES } from '../../schema/errors.ts'
import { EVENTS } from '../../schema/events.ts'
import { startAdapter } from './support.ts'

const openapi = readOpenApi()
const schemas = (openapi.document as unknown as { components: { schemas: Record<string, Schema> } }).components.schemas

describe('schema/openapi.yaml', () => {
  it('describes every route, and every route that it describes exists', async () => {
    await using adapter = await startAdapter()
    const described = openapi.operations.map(({ method, path }) => `${method} ${path}`)
    const registered = restRoutes.map(({ method, path }) => `${method} ${path}`)
    expect(described.toSorted()).toEqual([...registered, 'GET /docs', 'GET /v1/openapi.json', 'GET /v1/workflow.schema.json'].toSorted())
    for (const { method, path } of openapi.operations) {
      // Without a key: a route that is there asks for one, or needs none.
      const response = await fetch(adapter.url + path.replaceAll(/[{}]/g, ''), { method })
      expect([200, 401], `${method} ${path}`).toContain(response.status)
    }
  })

  it('has the closed set of error codes', () => {
    const codes = schemas.ErrorBody?.properties?.error?.properties?.code?.enum
    expect(codes?.toSorted()).toEqual(
      Object.keys(ERRORS)
        .filter((code) => !(code in GRAPHQL_CODES))
        .toSorted(),
    )
  })

  it('says of every field what it means', () => {
    const silent: string[] = []
    const walk = (schema: Schema, path: string) => {
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        const field = openapi.resolve(property)
        const items = field.items && openapi.resolve(field.items)
        const isPage = name === 'data' && path.endsWith('List')
        if (!property.description && !field.description && !items?.description && !isPage) silent.push(`${path}.${name}`)
        if (!property.$ref) walk(field, `${path}.${name}`)
        if (items && !field.items?.$ref) walk(items, `${path}.${name}[]`)
      }
    }
    for (const [name, schema] of Object.entries(schemas)) walk(schema, name)
    expect(silent).toEqual(['ErrorBody.error'])
  })

  it('has no description that an unquoted comma cuts', () => {
    // YAML makes what follows the comma a key without a value.
    const cut: string[] = []
    const walk = (value: unknown, path: string) => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, inner] of Object.entries(value)) {
        if (inner === null && !Array.isArray(value)) cut.push(`${path}/${key}`)
        walk(inner, `${path}/${key}`)
      }
    }
    walk(openapi.document, '')
    expect(cut).toEqual([])
  })

  it('has no reference that leads nowhere', () => {
    const references = [...JSON.stringify(openapi.document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, $ref]) => ({ $ref: $ref! }))
    expect(references.filter((reference) => openapi.resolve(reference) === undefined)).toEqual([])
  })
})

describe('the reference', () => {
  it('is served as JSON and as a page without a key, and the root leads to it', async () => {
    await using adapter = await startAdapter()
    const json = await fetch(`${adapter.url}/v1/openapi.json`)
    expect(await json.json()).toEqual(JSON.parse(JSON.stringify(openapi.document)))
    const page = await fetch(`${adapter.url}/`)
    expect(page.url).toBe(`${adapter.url}/docs`)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const html = await page.text()
    for (const { operation } of openapi.operations) expect(html).toContain(`id="${operation.operationId}"`)
    for (const type of Object.keys(EVENTS)) expect(html).toContain(`id="event-${type}"`)
    expect(Object.keys(openapi.document.webhooks as object).toSorted()).toEqual(Object.keys(EVENTS).toSorted())
    expect(html.indexOf('First call')).toBeLessThan(html.indexOf('<section>'))
  })

  it('loads nothing and runs nothing', async () => {
    await using adapter = await startAdapter()
    const page = await fetch(`${adapter.url}/docs`)
    const html = await page.text()
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(html).not.toMatch(/<script|<link|<img|src=|@import|url\(/)
  })
})
