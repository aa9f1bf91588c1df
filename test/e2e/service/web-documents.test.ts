import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newCollection, newOrganization, settled } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { Site } from '../../support/engines/site.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const page = (title: string, text: string) =>
  `<!doctype html><html><head><title>${title}</title></head><body><nav>Home · About · Contact us</nav><main><h1>${title}</h1><p>${text}</p></main><footer>All rights reserved</footer></body></html>`

describe('Web documents', () => {
  let engine: MockEngine
  let service: Service
  let caller: Caller
  let site: Site
  let other: Site
  let collection: Json
  beforeAll(async () => {
    engine = await startMockEngine()
    site = await Site.start()
    other = await Site.start()
    service = await startEmbedded({ catalog: mockCatalog(engine.url), env: { KIS_EGRESS_ALLOW: `${site.host},${other.host}` } })
    caller = await newOrganization(createCaller(service, service.key), service)
    collection = await newCollection(caller, 'mock-embed')
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    for (const each of [engine, site, other]) await each?.[Symbol.asyncDispose]()
  })

  const post = (path: string, body: Json) => caller.rest('POST', `/v1/collections/${collection.id}${path}`, body)
  const sources = async (): Promise<Json[]> => (await caller.rest('GET', `/v1/collections/${collection.id}/sources?limit=100`)).body.data
  const texts = async (query: string): Promise<string[]> =>
    (await post('/search', { query, mode: 'lexical' })).body.data.map(({ text }: Json) => text)

  it("are created from a page's main text, named by its title, and from any other format", async () => {
    site.pages.set('/news', { body: page('أخبار الميناء', 'The harbour of Qasr was built in 1931.'), etag: '"1"' })
    site.pages.set('/data/prices.csv', { body: 'item,price\nrope,12\nanchor,99\nsail,40\noar,7\nnet,3\n', type: 'text/csv' })
    const added = await post('/documents', { url: site.at('/news#top'), metadata: { topic: 'news' } })
    expect(added).toMatchObject({ status: 201, body: { file_name: 'أخبار الميناء.html', metadata: { topic: 'news' } } })
    expect(await settled(caller, collection.id, added.body.id)).toMatchObject({ status: 'ready' })
    const found = await texts('harbour 1931')
    expect(found.join()).toContain('built in 1931')
    expect(found.join()).not.toContain('All rights reserved')
    expect(site.requests.map(({ path }) => path)).toContain('/robots.txt')
    expect(site.requests.at(-1)!.headers['user-agent']).toContain('knowledge-and-inference-service')

    const table = await post('/documents', { url: site.at('/data/prices.csv') })
    expect(table).toMatchObject({ status: 201, body: { file_name: 'prices.csv' } })
    expect(await settled(caller, collection.id, table.body.id)).toMatchObject({ status: 'ready' })
  })

  it('cost nothing while unchanged, and are replaced when changed', async () => {
    const url = site.at('/news')
    const spent = async () => (await caller.rest('GET', '/v1/wallet')).body.balance_usd
    const before = await spent()
    const again = await post('/documents', { url })
    expect(again.status).toBe(200)
    const source = (await sources()).find((each) => each.url === url)
    expect((await post(`/sources/${source.id}/refresh`, undefined)).body).toMatchObject({ document_id: again.body.id, error: null })
    expect(site.requests.at(-1)!.headers['if-none-match']).toBe('"1"')
    expect(await spent()).toBe(before)

    site.pages.set('/news', { body: page('أخبار الميناء', 'The harbour of Qasr was rebuilt in 2024.'), etag: '"2"' })
    const { body } = await post(`/sources/${source.id}/refresh`, undefined)
    expect(body.document_id).toBe(again.body.id)
    await eventually(async () => {
      const found = await texts('harbour Qasr')
      // Searches find one version at any time.
      expect(found).toHaveLength(1)
      return found.join().includes('2024')
    }, 30_000)
    const found = (await texts('harbour Qasr')).join()
    expect(found).toContain('2024')
    expect(found).not.toContain('1931')
    // The file of the text before is gone with it.
    await eventually(async () => (await caller.rest('GET', `/v1/files/${again.body.file_id}`)).status === 404, 30_000)
  })

  it('remain while new content cannot be read', async () => {
    site.pages.set('/report', { body: page('Report', 'The quay of Report is 300 metres long.') })
    const { body: document } = await post('/documents', { url: site.at('/report') })
    await settled(caller, collection.id, document.id)
    const source = (await sources()).find((each) => each.url === site.at('/report'))
    site.pages.set('/report', { body: '%PDF-1.4 cut off', type: 'application/pdf' })
    await post(`/sources/${source.id}/refresh`, undefined)
    await eventually(async () => (await sources()).find((each) => each.id === source.id).error !== null, 30_000)
    expect((await sources()).find((each) => each.id === source.id)).toMatchObject({ document_id: document.id })
    expect((await texts('quay metres')).join()).toContain('300 metres')
  })

  it('include the pages of a sitemap or a page of links, on the same host and up to the requested number', async () => {
    const locs = [1, 2, 3, 4].map((n) => `<url><loc>${site.at(`/s/${n}?a=1&amp;b=2`)}</loc></url>`)
    site.pages.set('/sitemap.xml', {
      body: `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${locs.join('')}<url><loc>${other.at('/x')}</loc></url></urlset>`,
      type: 'application/xml',
    })
    for (const n of [1, 2]) site.pages.set(`/s/${n}?a=1&b=2`, { body: page(`Pier ${n}`, `Pier number ${n} is for ferries.`) })
    const added = await post('/sites', { url: site.at('/sitemap.xml'), limit: 3, metadata: { topic: 'piers' } })
    expect(added.body.data.map(({ url }: Json) => url)).toEqual([1, 2, 3].map((n) => site.at(`/s/${n}?a=1&b=2`)))
    await eventually(
      async () => (await sources()).filter(({ url }) => url.includes('/s/')).every((each) => each.checked_at !== null),
      30_000,
    )
    const byUrl = new Map((await sources()).map((source) => [source.url, source]))
    expect(byUrl.get(site.at('/s/3?a=1&b=2'))).toMatchObject({ document_id: null, error: expect.stringContaining('404') })
    const { document_id: id } = byUrl.get(site.at('/s/1?a=1&b=2'))
    expect(await settled(caller, collection.id, id)).toMatchObject({
      status: 'ready',
      metadata: { topic: 'piers' },
      file_name: 'Pier 1.html',
    })

    site.pages.set('/list', {
      body: `<a href="/s/1?a=1&amp;b=2">one</a> <a class=x href='s/2?a=1&b=2#part'>two</a> <a href="${other.at('/')}">out</a>`,
    })
    const linked = await post('/sites', { url: site.at('/list') })
    expect(linked.body.data.map(({ document_id }: Json) => document_id)).toEqual([id, byUrl.get(site.at('/s/2?a=1&b=2')).document_id])
    expect((await post('/sites', { url: site.at('/data/prices.csv') })).body.error).toMatchObject({ code: 'invalid_request', param: 'url' })
  })

  it("obey robots.txt, including that of a redirect target, and the organization's policy", async () => {
    other.pages.set('/robots.txt', { body: 'User-agent: *\nDisallow: /private\n', type: 'text/plain' })
    other.pages.set('/private/a', { body: page('Private', 'secret') })
    other.pages.set('/public', { body: page('Public', 'open') })
    site.pages.set('/away', { body: '', location: other.at('/private/a') })
    for (const url of [other.at('/private/a'), site.at('/away')])
      expect((await post('/documents', { url })).body.error).toMatchObject({
        code: 'invalid_request',
        param: 'url',
        message: expect.stringContaining('robots.txt'),
      })
    expect((await post('/documents', { url: other.at('/public') })).status).toBe(201)
    expect((await sources()).some(({ url }) => url.includes('private') || url.includes('away'))).toBe(false)
  })

  it('fetch nothing from internal addresses, and explain what is wrong with a URL', async () => {
    for (const url of [
      'http://127.0.0.1:1/',
      'http://169.254.169.254/latest',
      'file:///etc/passwd',
      'http://user:pass@example.com/',
      'ftp://example.com/',
    ])
      expect((await post('/documents', { url })).body.error, url).toMatchObject({ code: 'invalid_request', param: 'url' })
    expect((await post('/documents', { url: 'no address' })).body.error).toMatchObject({ code: 'invalid_request', param: 'url' })
    expect((await post('/documents', {})).body.error).toMatchObject({ code: 'invalid_request', param: 'file_id' })
    expect((await post('/documents', { url: site.at('/news'), refresh_seconds: 10 })).body.error).toMatchObject({
      param: 'refresh_seconds',
    })
    expect((await post('/documents', { url: site.at('/missing') })).body.error.message).toContain('404')
    site.pages.set('/binary', { body: Buffer.from([0, 1, 2, 3, 0, 0]), type: 'application/octet-stream' })
    expect((await post('/documents', { url: site.at('/binary') })).body.error).toMatchObject({
      code: 'unsupported_file_type',
      param: 'url',
    })
  })

  it('remain when their URL is removed', async () => {
    const [source] = (await sources()).filter(({ document_id }) => document_id !== null)
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/sources/${source.id}`)).body).toMatchObject({ deleted: true })
    expect((await sources()).some(({ id }) => id === source.id)).toBe(false)
    expect((await caller.rest('GET', `/v1/collections/${collection.id}/documents/${source.document_id}`)).status).toBe(200)
  })
})
