import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../support/catalog.ts'
import { balancedWallet, createCaller, newOrganization } from '../support/client.ts'
import { TcpProxy } from '../support/engines/tcp-proxy.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import { type BrowserPackages, startBrowser } from './packages.ts'

const LETTERS = 'abcdefghijklmnopqrst'
const PAGE_MS = 30_000
const STREAMS = new URL('../../docs/guide/streams.md', import.meta.url)

const started = await startBrowser()
const missing = 'reason' in started ? started.reason : null

/** A vendor that streams the letters, and waits for `go` after the tenth. */
class Vendor {
  chats = 0
  #go = Promise.withResolvers<void>()
  readonly #server = createServer((request, response) => {
    request.resume()
    this.chats++
    void this.#stream(response)
  })

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  go(): void {
    this.#go.resolve()
    this.#go = Promise.withResolvers()
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #stream(response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (choices: object[], more: object = {}) =>
      response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`)
    for (const [index, content] of [...LETTERS].entries()) {
      if (index === 10) await this.#go.promise
      send([{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }])
    }
    send([{ index: 0, delta: {}, finish_reason: 'stop' }])
    send([], { usage: { prompt_tokens: 20, completion_tokens: 20, total_tokens: 40 } })
    response.end('data: [DONE]\n\n')
  }
}

/** A server of another origin, with a page for each script. */
async function servePages(pages: ReadonlyMap<string, string>) {
  const server = createServer((request, response) => {
    const script = pages.get(request.url!)
    if (script === undefined) return response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    // No text of a script may end its element.
    return response.end(`<!doctype html><title>page</title><script type="module">${script.replaceAll('</script', '<\\/script')}</script>`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // Another name of the same machine makes it another site, too.
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, server }
}

describe.skipIf(missing !== null)(`Cross-origin page in Chromium${missing === null ? '' : ` (${missing})`}`, () => {
  const { browser, bundle } = started as BrowserPackages
  const vendor = new Vendor()
  const pages = new Map<string, string>()
  let folder: string
  let service: Service
  let site: Awaited<ReturnType<typeof servePages>>

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kis-browser-'))
    service = await startEmbedded({ catalog: mockCatalog(await vendor.start()) })
    site = await servePages(pages)
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    site?.server.closeAllConnections()
    site?.server.close()
    await service?.close()
    vendor.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** The page of a client, with the client of sockets that the documentation shows. */
  async function pageScript(client: string, settings: object): Promise<string> {
    const [, resumingClient] = /^```js\n([\s\S]*?)^```/m.exec(readFileSync(STREAMS, 'utf8'))!
    const file = join(folder, 'resuming-client.mjs')
    writeFileSync(file, resumingClient!)
    const entry = fileURLToPath(new URL(`./page/${client}.js`, import.meta.url))
    const modules = { 'resuming-client': file, 'graphql-ws': fileURLToPath(import.meta.resolve('graphql-ws')) }
    return `window.settings = ${JSON.stringify(settings)};\n${await bundle(entry, modules)}`
  }

  for (const client of ['apollo', 'urql']) {
    it(`${client}: queries by GET, a mutation, and a chat whose socket breaks: every character once, one charge`, async () => {
      const caller = await newOrganization(createCaller(service, service.key), service)
      await using proxy = await TcpProxy.start(service.rest)
      const settings = {
        url: `${proxy.url}/graphql`,
        key: caller.key,
        code: `from-${client}`,
        model: 'mock-chat',
        embeddingModel: 'mock-embed',
      }
      pages.set(`/${client}`, await pageScript(client, settings))
      const before = vendor.chats

      const page = await browser.newPage()
      const said: string[] = []
      page.on('pageerror', (error) => said.push(error.message))
      await page.goto(`${site.url}/${client}`)
      const until = async (condition: string) => {
        await page.waitForFunction(`window.page?.error || (${condition})`, undefined, { timeout: PAGE_MS }).catch((error: Error) => {
          throw new Error(`${error.message}: ${said.join('; ')}`)
        })
        return page.evaluate<Record<string, unknown>>('window.page')
      }

      expect(await until(`window.page?.text.length >= 10`)).toMatchObject({
        error: null,
        codes: [`from-${client}`],
        text: LETTERS.slice(0, 10),
      })
      const loadedUrls = await page.evaluate<string[]>(
        `performance.getEntriesByType('resource').map(({ name }) => decodeURIComponent(name))`,
      )
      expect(loadedUrls.some((url) => url.startsWith(settings.url) && url.includes('"sha256Hash"'))).toBe(true)
      await proxy.stop()
      vendor.go()
      await until('window.page.breaks > 0')
      await proxy.resume()
      expect(await until('window.page.done')).toMatchObject({ error: null, text: LETTERS, done: true })
      expect(said).toEqual([])

      expect(vendor.chats - before).toBe(1)
      const { balance_usd: balance } = await balancedWallet(caller)
      const { body: entries } = await caller.rest('GET', '/v1/wallet/entries?limit=100')
      const charges = entries.data.filter(({ amount_usd: amount }: { amount_usd: string }) => amount.startsWith('-'))
      expect(charges).toHaveLength(1)
      expect(Number(balance)).toBeCloseTo(10 + Number(charges[0].amount_usd), 9)
    }, 90_000)
  }
})
