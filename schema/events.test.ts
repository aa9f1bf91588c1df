import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse as parseSdl } from 'graphql'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { EVENTS } from './events.ts'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')
const documented = parse(read('events.yaml'), { merge: true })

describe('events.yaml', () => {
  it('describes every event of the closed list, and no other', () => {
    expect(Object.keys(documented).toSorted()).toEqual(Object.keys(EVENTS).toSorted())
  })

  it.each(Object.keys(EVENTS))('describes trigger, subject and content of %s', (type) => {
    const { when, subject, cursor, data } = documented[type]
    for (const text of [when, subject, cursor]) expect(text).toMatch(/\.$/)
    expect(subject).toMatch(/^The /)
    expect(cursor).toMatch('cursor' in data.properties ? /^`data\.cursor`\. / : /^None\./)
    expect(data).toMatchObject({ type: 'object', additionalProperties: false, required: Object.keys(data.properties) })
    for (const [name, { description }] of Object.entries<{ description?: string }>(data.properties)) expect(description, name).toBeDefined()
    new Ajv2020({ allowUnionTypes: true }).compile(data)
  })

  it('names the subscriptions of the contract', () => {
    const fields = ['billing', 'inference', 'knowledge'].flatMap((name) =>
      parseSdl(read(`${name}.graphql`)).definitions.flatMap((node) =>
        'fields' in node && 'name' in node && node.name?.value === 'Subscription'
          ? (node.fields ?? []).map((field) => field.name.value)
          : [],
      ),
    )
    for (const { subscription } of Object.values<{ subscription: string | null }>(documented))
      if (subscription !== null) expect(fields).toContain(subscription)
  })
})
