import { get } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readOpenApi } from '../../rest-adapter/http/openapi.ts'
import { EVENTS } from '../../schema/events.ts'
import { startAdapter } from './support.ts'

const openapi = readOpenApi()

async function readDocument(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/v1/openapi.json`, { headers })
  return (await response.json()) as typeof openapi.document & { readonly servers: readonly { readonly url: string }[] }
}

describe('API reference', () => {
  it('is served as JSON without a key: the whole document, with first steps and errors', async () => {
    await using adapter = await startAdapter()
    const document = await readDocument(adapter.url)
    const { info, servers, ...rest } = document
    const { info: own, servers: _, ...expected } = JSON.parse(JSON.stringify(openapi.document))
    expect(rest).toEqual(expected)
    expect(Object.keys(document.webhooks as object).toSorted()).toEqual(Object.keys(EVENTS).toSorted())
    expect(info).toMatchObject({ title: own.title, version: own.version })
    expect(info.description.startsWith(own.description)).toBe(true)
    expect(info.description).toContain('First call')
    expect(info.description).toContain('`insufficient_quota` | 429')
    expect(servers).toEqual([{ url: adapter.url }])
  })

  it('is compressed once, for any host, by gzip only: unauthenticated callers cost no compression', async () => {
    await using adapter = await startAdapter()
    const read = async (path: string, encoding: string, host = 'a.example') => {
      const { promise, resolve } = Promise.withResolvers<{ encoding: string | undefined; bytes: Buffer }>()
      const headers = { 'accept-encoding': encoding, host }
      get(adapter.url + path, { headers }, async (response) => {
        const bytes = Buffer.concat(await response.toArray())
        resolve({ encoding: response.headers['content-encoding'], bytes })
      })
      return promise
    }
    const plain = await read('/v1/openapi.json', 'br, gzip;q=0')
    expect([plain.encoding, JSON.parse(plain.bytes.toString()).servers]).toEqual([undefined, [{ url: 'http://a.example' }]])
    const packed = await read('/v1/openapi.json', 'gzip, br')
    expect([packed.encoding, gunzipSync(packed.bytes).equals(plain.bytes)]).toEqual(['gzip', true])
    expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 3)
    // The long part is the same bytes for another host.
    const other = await read('/v1/openapi.json', 'gzip, br', 'b.example')
    const [same, size] = [packed.bytes.findIndex((byte, at) => byte !== other.bytes[at]), packed.bytes.length]
    expect(same).toBeGreaterThan(size - 10_000)
    for (const path of ['/v1/workflow.schema.json', '/docs/scalar.js'])
      expect([(await read(path, 'br')).encoding, (await read(path, 'br, gzip')).encoding]).toEqual([undefined, 'gzip'])
  })

  it('names the host of the reader in every example', async () => {
    await using adapter = await startAdapter()
    const { port } = new URL(adapter.url)
    const document = await readDocument(`http://localhost:${port}`, { 'x-forwarded-proto': 'https' })
    expect(document.servers).toEqual([{ url: `https://localhost:${port}` }])
    expect(document.info.description).toContain(`KIS_URL=https://localhost:${port} `)
    expect(document.info.description).toContain(`baseURL: 'https://localhost:${port}/v1'`)
  })

  it('is a page in Arabic or English, by the URL or else by the browser', async () => {
    await using adapter = await startAdapter()
    const read = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(adapter.url + path, { headers })
      return { response, html: await response.text() }
    }
    const root = await read('/')
    expect(root.response.url).toBe(`${adapter.url}/docs`)
    expect(root.response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(root.html).toContain('<html lang="en" dir="ltr">')
    for (const [path, headers] of [
      ['/docs?lang=ar', { 'accept-language': 'en' }],
      ['/docs', { 'accept-language': 'fr, ar-SA;q=0.9, en;q=0.8' }],
    ] as const) {
      const { html, response } = await read(path, headers)
      expect(html).toContain('<html lang="ar" dir="rtl">')
      expect(html).toContain('&quot;locale&quot;:&quot;ar&quot;')
      expect(response.headers.get('content-language')).toBe('ar')
    }
    expect((await read('/docs?lang=%3Cscript%3E')).html).toContain('<html lang="en" dir="ltr">')
  })

  it('runs and loads only its own files', async () => {
    await using adapter = await startAdapter()
    const page = await fetch(`${adapter.url}/docs`)
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    expect(policy).toContain("connect-src 'self'")
    expect(policy).not.toMatch(/http|\*|unsafe-eval/)
    const html = await page.text()
    expect([...html.matchAll(/<script([^>]*)>([^<]*)/g)].map(([, attributes, inline]) => [attributes?.trim(), inline])).toEqual([
      ['src="/docs/scalar.js" defer', ''],
      ['src="/docs/start.js" defer', ''],
    ])
    expect(html).not.toMatch(/(?:src|href)="(?!\/)/)
    const start = await fetch(`${adapter.url}/docs/start.js`)
    expect([start.headers.get('content-type'), await start.text()]).toEqual([
      'text/javascript; charset=utf-8',
      expect.stringContaining('Scalar.createApiReference'),
    ])
    const script = await fetch(`${adapter.url}/docs/scalar.js`)
    expect(script.headers.get('content-encoding')).toBe('gzip')
    const etag = script.headers.get('etag')!
    expect(await script.text()).toContain('createApiReference')
    expect((await fetch(`${adapter.url}/docs/scalar.js`, { headers: { 'if-none-match': etag } })).status).toBe(304)
  })
})
