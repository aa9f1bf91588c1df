import vm from 'node:vm'
import { describe, expect, it } from 'vitest'
import { CONFIG, KEY, startGateway } from './support/start.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }

describe('GraphiQL', () => {
  it('is served to browsers without a key, from this service only', async () => {
    const { url } = await startGateway()
    const response = await fetch(url, { headers: BROWSER })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/html')
    const policy = response.headers.get('content-security-policy')!
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/script-src[^;]*unsafe|https?:|\*/)
    const page = await response.text()
    expect(page).not.toMatch(/https?:\/\//)
    expect(page).not.toMatch(/<script>|\son\w+=/)
    const addresses = [...page.matchAll(/"(\/graphql\/assets\/[^"]+)"/g)].map(([, address]) => address!)
    expect(addresses).toHaveLength(6)
    for (const address of addresses) {
      const asset = await fetch(new URL(address, url))
      expect([address, asset.status]).toEqual([address, 200])
      const text = await asset.text()
      if (address.endsWith('.js')) new vm.Script(text)
      // The policy forbids both.
      expect(text).not.toMatch(/\bnew Function\(|[^.\w]eval\(/)
      expect(text).not.toMatch(/@import|url\(["']?https?:/)
    }
  })

  it('sends the key with requests and in the first message of its socket', async () => {
    const { url } = await startGateway()
    const code = await (await fetch(`${url}/assets/page.js`)).text()
    const stored = new Map([['kis-key', KEY]])
    const field = { value: '' }
    let options: Record<string, unknown> & { additionalHeaders?: () => unknown; connectionParams?: () => unknown } = {}
    const context = vm.createContext({
      sessionStorage: { getItem: (name: string) => stored.get(name) ?? null },
      location: new URL(url),
      document: { querySelector: () => ({ addEventListener() {}, elements: { namedItem: () => field } }) },
      YogaGraphiQL: { renderYogaGraphiQL: (_root: unknown, rendered: typeof options) => (options = rendered) },
    })
    vm.runInContext(`globalThis.self = globalThis;${code}`, context)
    expect(field.value).toBe(KEY)
    expect(options).toMatchObject({ endpoint: url, subscriptionsEndpoint: url.replace('http', 'ws'), subscriptionsProtocol: 'WS' })
    expect(options.additionalHeaders?.()).toEqual({ authorization: `Bearer ${KEY}` })
    expect(options.connectionParams?.()).toEqual({ authorization: `Bearer ${KEY}` })
  })

  it('uses the session of the portal without a key, and waits for one without a session', async () => {
    const { url } = await startGateway()
    const code = await (await fetch(`${url}/assets/page.js`)).text()
    for (const ok of [true, false]) {
      const requests: unknown[] = []
      let options: { additionalHeaders?: () => unknown; connectionParams?: () => unknown } | undefined
      const context = vm.createContext({
        sessionStorage: { getItem: () => null },
        location: new URL(url),
        document: { querySelector: () => ({ addEventListener() {}, elements: {} }) },
        fetch: async (...request: unknown[]) => {
          requests.push(request)
          return { ok }
        },
        YogaGraphiQL: { renderYogaGraphiQL: (_root: unknown, rendered: typeof options) => (options = rendered) },
      })
      vm.runInContext(`globalThis.self = globalThis;${code}`, context)
      // What the page awaits is answered already.
      await new Promise((resolve) => setImmediate(resolve))
      expect(requests).toMatchObject([[url, { method: 'POST', headers: { 'content-type': 'application/json' } }]])
      expect([options?.additionalHeaders?.(), options?.connectionParams?.()]).toEqual(ok ? [{}, {}] : [undefined, undefined])
    }
  })

  it('does not affect operations, and is absent without introspection', async () => {
    const { url } = await startGateway()
    // GraphiQL puts the query into the address, which is opened again.
    expect((await fetch(`${url}?query={ping}`, { headers: BROWSER })).headers.get('content-type')).toContain('text/html')
    expect((await fetch(`${url}?query={ping}`)).status).toBe(401)
    const headers = { ...BROWSER, authorization: `Bearer ${KEY}` }
    expect((await fetch(`${url}?query={ping}`, { headers })).headers.get('content-type')).toContain('json')
    const closed = await startGateway({ config: { ...CONFIG, introspection: false } })
    expect((await fetch(closed.url, { headers: BROWSER })).status).toBe(401)
    expect((await fetch(`${closed.url}/assets/page.js`)).status).toBe(404)
  })
})
