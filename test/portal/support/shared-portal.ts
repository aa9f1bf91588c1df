import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LLMock } from '@copilotkit/aimock'
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest'
import { type Browser, startBrowser } from '../../browser/packages.ts'
import { newOrganization } from '../../support/client.ts'
import { TestMcpServer } from '../../support/engines/mcp-server.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { MemberIssuer } from '../../support/processes/member-issuer.ts'
import { freePorts } from '../../support/processes/service.ts'
import { type RunningPortal, startPortal } from './portal.ts'
import { startVendor, withVendor } from './vendor.ts'
import { type Visit, Visitor } from './visitor.ts'

/** A service with its portal, what it talks to, and a browser for the visitors of all suites. */
export interface SharedPortal extends RunningPortal {
  readonly browser: Browser
  readonly vendor: LLMock
  readonly receiver: WebhookReceiver
  readonly tools: TestMcpServer
  /** Asked for the service's public address, if people sign in there. */
  readonly issuer: MemberIssuer
  /** The address of a web site with the page `/harbour`. */
  readonly site: string
  newTenant(options?: Parameters<typeof newOrganization>[2]): ReturnType<typeof newOrganization>
  /** Somebody with cookies and storage of their own; signed in, if they have a key. `origin`: of a proxy of the service. */
  come(visit?: Visit & { readonly key?: string; readonly path?: string; readonly origin?: string }): Promise<Visitor>
}

const started = await startBrowser()

/** Runs suites, one after the other, on one service and in one browser. Each makes organizations of its own. */
export function atPortal(
  name: string,
  { hasProvider }: { readonly hasProvider: boolean },
  suites: readonly ((portal: SharedPortal) => void)[],
): void {
  const missing = 'reason' in started ? ` (${started.reason})` : ''
  describe.skipIf(missing !== '')(`${name}, in Chromium${missing}`, () => {
    const portal = {} as SharedPortal
    const ends = new AsyncDisposableStack()
    beforeAll(async () => {
      Object.assign(portal, await openPortal(hasProvider, ends))
    }, 240_000)
    // What a failed test has left behind is no concern of the next.
    afterEach(() => portal.mock.failWith(null))
    afterAll(() => ends.disposeAsync())
    for (const suite of suites) describe(suite, () => suite(portal))
  })
}

/** Whoever looks at the page as it is meets no barrier, and nothing is cut off, in windows of other widths neither. */
export async function isSound(visitor: Visitor, otherWidths: readonly number[] = []): Promise<void> {
  expect(await visitor.findBarriers()).toEqual([])
  expect(await visitor.findOverflow()).toEqual([])
  for (const width of otherWidths) {
    await visitor.page.setViewportSize({ width, height: 900 })
    expect(await visitor.findOverflow(), `${width} px`).toEqual([])
  }
}

async function openPortal(hasProvider: boolean, ends: AsyncDisposableStack): Promise<SharedPortal> {
  const { browser } = started as { readonly browser: Browser }
  ends.defer(() => browser.close())
  const [port] = await freePorts(1)
  const vendor = await startVendor()
  ends.defer(async () => void (await vendor.stop()))
  const receiver = ends.use(await WebhookReceiver.start())
  const tools = ends.use(await TestMcpServer.start())
  const issuer = ends.use(await MemberIssuer.start({ publicUrl: `http://127.0.0.1:${port}`, host: 'localhost' }))
  const site = await startSite()
  ends.defer(() => void site.close())
  const siteHost = `127.0.0.1:${(site.address() as AddressInfo).port}`
  const env = {
    PORT: String(port),
    KIS_EGRESS_ALLOW: [receiver.host, tools.hostAndPort, siteHost].join(),
    ...(hasProvider && issuer.env),
  }
  const portal = ends.use(await startPortal(env, withVendor(vendor)))
  const { service, operator, mock } = portal
  return {
    ...{ service, operator, mock, browser, vendor, receiver, tools, issuer, site: `http://${siteHost}` },
    newTenant: (options) => newOrganization(operator, service, { name: 'Harbour Museum', ...options }),
    async come({ key, path, origin = service.rest, ...visit } = {}) {
      const visitor = await Visitor.come(browser, origin, visit)
      if (key) await visitor.signIn(key, path)
      return visitor
    },
    [Symbol.asyncDispose]: () => ends.disposeAsync(),
  }
}

function startSite(): Promise<Server> {
  const site = createServer((request, response) => {
    response.writeHead(request.url === '/harbour' ? 200 : 404, { 'content-type': 'text/html' })
    response.end('<title>Harbour</title><main><p>The harbour opens at six in the morning, every day of the year.</p></main>')
  })
  return new Promise((resolve) => site.listen(0, '127.0.0.1', () => resolve(site)))
}
