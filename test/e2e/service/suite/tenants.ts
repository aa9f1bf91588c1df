import { expect, it } from 'vitest'
import { addDocument, type Json, newCollection } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import type { Running } from './running.ts'

/** What one organization can see of another. */
export function tenants(running: Running): void {
  it('nothing of one organization is visible to another', async () => {
    const [ours, theirs] = await Promise.all([running.newOrganization(), running.newOrganization()])
    const secret = 'The canary sings at midnight.'
    const collection = await newCollection(ours, 'e5-small-ar-en', 'same')
    const own = await newCollection(theirs, 'e5-small-ar-en', 'same')
    const document = await addDocument(ours, collection.id, 'canary.txt', secret)
    await addDocument(theirs, own.id, 'other.txt', 'The sparrow sleeps at noon.')
    const chunk = (await ours.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'canary' })).body.data[0].chunk_id
    const keyId = (await ours.rest('GET', '/v1/keys')).body.data[0].id
    const attempts: [string, string, unknown?][] = [
      ['GET', `/v1/collections/${collection.id}`],
      ['PATCH', `/v1/collections/${collection.id}`, { collection_name: 'taken' }],
      ['DELETE', `/v1/collections/${collection.id}`],
      ['POST', `/v1/collections/${collection.id}/search`, { query: 'canary' }],
      ['GET', `/v1/collections/${collection.id}/documents`],
      ['GET', `/v1/collections/${collection.id}/documents/${document.id}`],
      ['DELETE', `/v1/collections/${collection.id}/documents/${document.id}`],
      ['POST', `/v1/collections/${collection.id}/documents/${document.id}/retry`],
      ['GET', `/v1/collections/${own.id}/documents/${document.id}`],
      ['POST', `/v1/collections/${own.id}/documents`, { file_id: document.file_id }],
      ['GET', `/v1/files/${document.file_id}`],
      ['GET', `/v1/files/${document.file_id}/content`],
      ['DELETE', `/v1/files/${document.file_id}`],
      ['GET', `/v1/keys/${keyId}`],
      ['PATCH', `/v1/keys/${keyId}`, { name: 'taken' }],
      ['POST', `/v1/keys/${keyId}/rotate`],
      ['DELETE', `/v1/keys/${keyId}`],
    ]
    for (const [method, path, body] of attempts) {
      const response = await theirs.rest(method, path, body)
      expect([method, path, response.status, response.body.error?.code]).toEqual([method, path, 404, 'not_found'])
    }
    const operatorsOnly: [string, unknown][] = [
      ['/v1/organizations', { name: 'x' }],
      [`/v1/organizations/${ours.organizationId}/top-ups`, { amount_usd: '1', reference: 'x' }],
    ]
    for (const [path, body] of operatorsOnly) expect((await theirs.rest('POST', path, body)).body.error.code).toBe('permission_denied')
    const lists = await Promise.all(
      ['/v1/collections', '/v1/files', '/v1/keys', '/v1/usage', '/v1/wallet/entries'].map((path) => theirs.rest('GET', path)),
    )
    const everything = JSON.stringify(lists.map(({ body }) => body))
    for (const id of [collection.id, document.id, document.file_id, keyId, ours.organizationId]) expect(everything).not.toContain(id)
    const { data } = await theirs.graphql(
      'query ($c: ID!, $d: ID!, $f: ID!, $k: ID!) { collection(id: $c) { id } document(id: $d) { id } file(id: $f) { id } apiKey(id: $k) { id } }',
      { c: collection.id, d: document.id, f: document.file_id, k: keyId },
    )
    expect(data).toEqual({ collection: null, document: null, file: null, apiKey: null })
    expect(JSON.stringify((await theirs.rest('POST', `/v1/collections/${own.id}/search`, { query: secret })).body)).not.toContain('canary')
    expect(chunk).toBeTruthy()

    const client = theirs.socket()
    const events = client.iterate<Json>({ query: 'subscription { documentUpdated { document { id } } }' })
    const seen: string[] = []
    const reading = (async () => {
      for await (const { data } of events) seen.push(data!.documentUpdated.document.id)
    })()
    const add = async (name: string) => (await addDocument(theirs, own.id, name, `The sparrow of ${name}.`)).id
    const mine: string[] = []
    // Only its first event shows that a subscription is open.
    while (seen.length === 0) mine.push(await add(`${mine.length}.txt`))
    await addDocument(ours, collection.id, 'second.txt', 'Another canary.')
    const last = await add('last.txt')
    await eventually(() => seen.includes(last))
    await client.dispose()
    await reading
    expect([...mine, last]).toEqual(expect.arrayContaining(seen))
  })
}
