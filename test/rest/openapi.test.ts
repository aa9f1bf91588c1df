import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Check, compileChecks } from '../../rest-adapter/http/checks.ts'
import { readOpenApi, type Schema } from '../../rest-adapter/http/openapi.ts'
import { restRoutes } from '../../rest-adapter/main.ts'
import { ERRORS, GRAPHQL_CODES } from '../../schema/errors.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { rootFields } from '../support/contract.ts'
import { startAdapter } from './support.ts'

/** The field that an operation asks for, after its variables and perhaps another name. */
const ROOT_FIELD = /(?:query|mutation|subscription) [A-Z]\w*(?:\([^)]*\))?\s*\{\s*(?:\w+:\s*)?(\w+)/g

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const openapi = readOpenApi()
const schemas = (openapi.document as unknown as { components: { schemas: Record<string, Schema> } }).components.schemas

describe('OpenAPI document', () => {
  it('describes every route, and every described route exists', async () => {
    await using adapter = await startAdapter()
    const described = openapi.operations.map(({ method, path }) => `${method} ${path}`)
    const registered = restRoutes.map(({ operation: { method, path } }) => `${method} ${path}`)
    expect(described.toSorted()).toEqual([...registered, 'GET /docs', 'GET /v1/openapi.json', 'GET /v1/workflow.schema.json'].toSorted())
    for (const { method, path } of openapi.operations) {
      // Without a key: a route that is there asks for one, or needs none.
      const response = await fetch(adapter.url + path.replaceAll(/[{}]/g, ''), { method })
      expect([200, 401], `${method} ${path}`).toContain(response.status)
    }
  })

  it('covers each query, mutation and subscription, except those that docs/guide/graphql.md names', () => {
    const adapter = [...globSync('rest-adapter/**/*.ts', { cwd: ROOT }), 'subgraphs/common/server/bodies/request-counts.ts']
    const sources = adapter.map((file) => readFileSync(`${ROOT}${file}`, 'utf8')).join('\n')
    const page = readFileSync(`${ROOT}docs/guide/graphql.md`, 'utf8')
    const rows = page.slice(page.indexOf('## What only GraphQL has'), page.indexOf('## Partial answers')).matchAll(/^\| (`.*?) \|/gm)
    const named = [...rows].flatMap(([, fields]) => [...fields!.matchAll(/`(\w+)`/g)].map(([, name]) => name))
    const used = new Set([...sources.matchAll(ROOT_FIELD)].map(([, name]) => name))
    const lacking = new Set(rootFields.map(({ name }) => name).filter((name) => !used.has(name)))
    expect([...lacking].toSorted()).toEqual(named.toSorted())
  })

  it('has the closed set of error codes', () => {
    const codes = schemas.ErrorDetail?.properties?.code?.enum
    expect(codes?.toSorted()).toEqual(
      Object.keys(ERRORS)
        .filter((code) => !(code in GRAPHQL_CODES))
        .toSorted(),
    )
  })

  it('describes every field', () => {
    const silent: string[] = []
    const walk = (schema: Schema, path: string) => {
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        const field = openapi.resolve(property)
        const items = field.items && openapi.resolve(field.items)
        if (!property.description && !field.description && !items?.description) silent.push(`${path}.${name}`)
        if (!property.$ref) walk(field, `${path}.${name}`)
        if (items && !field.items?.$ref) walk(items, `${path}.${name}[]`)
      }
    }
    for (const [name, schema] of Object.entries(schemas)) walk(schema, name)
    expect(silent).toEqual([])
  })

  it('has schemas that compile, and requires a body unless an empty object is enough', () => {
    // Each takes one of several fields, which its schema does not say.
    const acceptsOneOf = ['POST /v1/collections/{id}/documents', 'POST /v1/agents/{id}/runs', 'POST /mcp']
    const checks = compileChecks(openapi)
    const isEnough = (check: Check) => {
      try {
        check({})
        return true
      } catch (error) {
        // Else its schema does not compile.
        expect(error).toBeInstanceOf(KisError)
        return false
      }
    }
    for (const { operation } of restRoutes)
      for (const check of [checks.body(operation).form, checks.query(operation)]) if (check) isEnough(check)
    for (const { operation } of restRoutes) {
      const name = `${operation.method} ${operation.path}`
      const { json } = checks.body(operation)
      if (!json || acceptsOneOf.includes(name)) continue
      expect(operation.isBodyRequired ?? true, name).toBe(!isEnough(json))
    }
  })

  it('has no dangling reference', () => {
    const references = [...JSON.stringify(openapi.document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, $ref]) => ({ $ref: $ref! }))
    expect(references.filter((reference) => openapi.resolve(reference) === undefined)).toEqual([])
  })
})
