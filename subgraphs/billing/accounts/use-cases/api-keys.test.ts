import { expect, it } from 'vitest'
import { SiftBudget } from '../../../common/documents/lists.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { FindOptions } from '../../../common/ports/document-store.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { findNamedKey, keyReads, listApiKeys } from './api-keys.ts'

it('reads the keys that the records of a page name in one batch, and only those that the caller may name', async () => {
  const reads: unknown[] = []
  const find = async (filter: { readonly _id: { readonly $in: readonly string[] } }) => {
    reads.push(filter)
    return filter._id.$in
      .filter((id) => id !== 'key_gone')
      .map((_id) => ({ _id, organizationId: _id === 'key_strange' ? 'org_b' : 'org_a' }))
  }
  const keys = keyReads({ collections: { apiKeys: { find } } } as unknown as BillingDeps)
  const admin = { organizationId: 'org_a', apiKeyId: 'key_1', scopes: ['admin'] } as unknown as Principal
  const named = ['key_1', 'key_2', 'key_1', 'key_gone', 'key_strange']
  const found = await Promise.all(named.map((id) => findNamedKey(keys, admin, id)))
  expect(found.map((key) => key?._id)).toEqual(['key_1', 'key_2', 'key_1', undefined, undefined])
  expect(reads).toEqual([{ _id: { $in: ['key_1', 'key_2', 'key_gone', 'key_strange'] } }])

  const reader = { ...admin, scopes: ['billing:read'] } as Principal
  expect((await Promise.all(named.map((id) => findNamedKey(keys, reader, id)))).map((key) => key?._id)).toEqual(
    named.map((id) => (id === 'key_1' ? id : undefined)),
  )
})

it('the filtered lists of one operation read at most 20,000 keys in total', async () => {
  const keys = Array.from({ length: 1_000 }, (_, i) => ({ _id: `key_${i}`, name: `robot ${i}` }))
  const find = async (_filter: unknown, { limit }: FindOptions) => keys.slice(0, limit)
  const deps = { collections: { apiKeys: { find } }, clock: { now: () => new Date() } } as unknown as BillingDeps
  const admin = { organizationId: 'org_a', apiKeyId: 'key_1', scopes: ['admin'] } as unknown as Principal
  const sifting = new SiftBudget()
  const list = () => listApiKeys(deps, admin, 'org_a', { filter: { nameContains: 'none' } }, sifting)
  for (let i = 0; i < 10; i++) expect((await list()).edges).toEqual([])
  await expect(list()).rejects.toMatchObject({ code: 'operation_too_complex' })
})
