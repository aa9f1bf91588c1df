import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Page {
  readonly body: string | Buffer
  readonly type?: string
  readonly etag?: string
  readonly location?: string
  /** Nothing is answered. */
  readonly hangs?: boolean
}

/** A site on this machine, with its own robots.txt. */
export class Site implements AsyncDisposable {
  readonly pages = new Map<string, Page>()
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = []
  /** Connections that ended while a page hung. */
  left = 0
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      const path = request.url!
      this.requests.push({ path, headers: request.headers })
      const page = this.pages.get(path)
      if (page?.hangs) return void request.socket.once('close', () => this.left++)
      if (!page) return void response.writeHead(404).end()
      if (page.location) return void response.writeHead(302, { location: page.location }).end()
      const etag = page.etag ? { etag: page.etag } : {}
      if (page.etag && request.headers['if-none-match'] === page.etag) return void response.writeHead(304, etag).end()
      response.writeHead(200, { 'content-type': page.type ?? 'text/html; charset=utf-8', ...etag }).end(page.body)
    })
  }

  static async start(): Promise<Site> {
    const site = new Site()
    site.#server.listen(0, '127.0.0.1')
    await once(site.#server, 'listening')
    return site
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  at(path: string): string {
    return `http://${this.host}${path}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
