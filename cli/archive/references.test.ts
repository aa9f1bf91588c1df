import { expect, it } from 'vitest'
import type { DocumentCollection } from '../../subgraphs/common/ports/document-store.ts'
import { REFERENCES, References, type ReferencesOf } from './references.ts'
import { listKinds } from './stores.ts'

interface Documents {
  readonly documents: DocumentCollection<{
    readonly _id: string
    readonly organizationId: string
    readonly collectionId: string
    readonly chunks: readonly { readonly fileIds: readonly string[] }[]
  }>
}

/** Creates a record with a text at a path of the table. */
function recordWith(path: string, text: string): Record<string, unknown> {
  const [field, ...rest] = path.split('.')
  if (field === undefined || field === '') return text as never
  if (field === '$key') return { [text]: {} }
  const inner = rest.length > 0 ? recordWith(rest.join('.'), text) : text
  return field === '*' ? { any: inner } : { [field]: inner }
}

it('a field named like an ID that is missing in the table fails the compiler', () => {
  const whole: ReferencesOf<Documents> = {
    documents: { collectionId: ['collections'], 'chunks.*.fileIds': ['documents'], more: ['collections'] },
  }
  // @ts-expect-error: collectionId is missing
  const lacking: ReferencesOf<Documents> = { documents: { 'chunks.*.fileIds': ['documents'] } }
  // @ts-expect-error: the ids in the list are missing
  const shallow: ReferencesOf<Documents> = { documents: { collectionId: ['collections'] } }
  expect([whole, lacking, shallow].map(({ documents }) => Object.keys(documents).length)).toEqual([3, 1, 1])
})

it('the table has exactly the kinds of records', () => {
  const kinds = [...listKinds().keys()]
  expect(kinds.filter((kind) => !REFERENCES.has(kind))).toEqual([])
  for (const [kind, targets] of REFERENCES)
    for (const [path, target] of targets)
      if (!('free' in target)) expect([kind, path, target.filter((name) => !kinds.includes(name))]).toEqual([kind, path, []])
})

it('finds the missing record of each reference, in any order of the records', () => {
  for (const [kind, targets] of REFERENCES) {
    for (const [path, target] of targets) {
      const record = { _id: 'one', ...recordWith(path, 'another') }
      const of = (...added: readonly (readonly [string, unknown])[]) => {
        const references = new References()
        for (const [name, value] of added) references.add(name, value)
        return references.problems()
      }
      const named = [kind, record] as const
      if ('free' in target) expect([path, of(named)]).toEqual([path, []])
      else {
        expect([path, of(named)]).toEqual([path, [expect.stringContaining('refers to another, which is missing')]])
        const last = [target.at(-1)!, { _id: 'another' }] as const
        for (const added of [
          [named, last],
          [last, named],
        ])
          expect([path, of(...added)]).toEqual([path, []])
      }
    }
  }
})

it('accepts the kinds of an archive of one organization, and any value for a record', () => {
  const references = new References()
  for (const value of [null, 7, 'text', [], { _id: 7, apiKeyId: {} }]) references.add('inference/workflow-runs', value)
  references.add('inference/workflow-runs', { _id: 'wfr_1', apiKeyId: 'key_1' })
  expect(references.problems()).toEqual(['inference/workflow-runs wfr_1 refers to key_1, which is missing'])
  references.add('billing/api-keys', { _id: 'key_1' })
  expect(references.problems()).toEqual([])
})

it('escapes control sequences of an archive for the terminal, and truncates its text', () => {
  const references = new References()
  for (let i = 0; i < 9; i++) references.add('billing/organization', { owners: [`mem_\u009b2J\u001b${i}${'x'.repeat(5_000)}`] })
  const [first, ...rest] = references.problems()
  expect(first).toMatch(/^billing\/organization refers to mem_\\u\{9b\}2J\\u\{1b\}0x{200,300}$/)
  expect(rest.at(-1)).toBe('and 4 more')
})

it('skips records of an organization in erasure, and the file of a document in deletion', () => {
  const references = new References()
  references.add('billing/organizations', { _id: 'org_1', deletedAt: new Date() })
  references.add('billing/usage_records', { _id: 'use_1', organizationId: 'org_1', apiKeyId: 'key_1' })
  references.add('knowledge/documents', { _id: 'doc_1', listed: false, fileId: 'file_1' })
  expect(references.problems()).toEqual([])
})
