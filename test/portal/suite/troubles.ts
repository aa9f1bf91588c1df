import { beforeAll, expect, it } from 'vitest'
import { addDocument, type Caller, newCollection } from '../../support/client.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import type { SharedPortal } from '../support/shared-portal.ts'
import type { Visitor } from '../support/visitor.ts'

/** Every process refuses a revoked key within 5 s. The rest is for a busy machine. */
const ENDED_MS = 20_000
const GRAPHQL = /\/graphql$/
const LOST = 'The connection is lost. Trying again…'
const HOSTILE = ['<img src=x onerror="window.wasRun = true"><script>window.wasRun = true</script>', 'W'.repeat(100), 'م'.repeat(100)]

export function troubles(portal: SharedPortal): void {
  let owner: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    owner = await portal.newTenant()
  })

  const newKey = async (name: string) =>
    (await owner.rest('POST', '/v1/keys', { name })).body as { readonly id: string; readonly key: string }
  const newAgent = async () => {
    const { body } = await owner.rest('POST', '/v1/agents', { code: `agent-${crypto.randomUUID()}`, name: 'Guide', model: 'mock-chat' })
    return body as { readonly id: string }
  }
  const ask = async ({ page }: Visitor, question: string) => {
    await page.getByRole('textbox', { name: 'Your question' }).fill(question)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
  }
  const pathOf = ({ page }: Visitor) => page.evaluate<string>('location.pathname')

  // These mostly wait: for keys to end, pings to fail, the next try.
  it.concurrent('preserves the page after a revocation of the key, and continues with another key', async () => {
    const { id, key } = await newKey('short-lived')
    await using visitor = await portal.come({ key, path: '/models' })
    await owner.rest('DELETE', `/v1/keys/${id}`)
    const ask = `fetch('/graphql', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"{ viewer { id } }"}' })`
    await eventually(() => visitor.page.evaluate<boolean>(`${ask}.then(({ status }) => status === 401)`), ENDED_MS)
    await visitor.page.locator('nav a[href="/home"]').first().click()
    const dialog = visitor.page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    await visitor.page.locator('[role=dialog] input[type=password]').fill((await newKey('next')).key)
    await visitor.page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    await visitor.settle()
    expect(await pathOf(visitor)).toBe('/home')
  })

  it.concurrent('reports a lost connection, and reconnects without a reload', async () => {
    await using visitor = await portal.come({ key: owner.key })
    await visitor.page.evaluate('window.isSamePage = true')
    await visitor.context.setOffline(true)
    await visitor.page.locator('nav a[href="/models"]').first().click()
    await visitor.page.getByText(LOST).first().waitFor()
    await visitor.context.setOffline(false)
    await visitor.page.getByText(LOST).first().waitFor({ state: 'hidden', timeout: 40_000 })
    await visitor.page.getByText('mock-chat').first().waitFor()
    expect(await visitor.page.evaluate('window.isSamePage')).toBe(true)
  })

  it.concurrent('resumes a reply and an upload after a network outage, and the reply is paid once', async () => {
    const collection = await newCollection(owner, 'mock-embed')
    const agent = await newAgent()
    await using network = await TcpProxy.start(portal.service.rest)
    await using visitor = await portal.come({ origin: network.url, key: owner.key, path: `/agents/${agent.id}` })
    await using other = await portal.come({ origin: network.url, key: owner.key, path: `/collections/${collection.id}` })
    portal.mock.closeGate()
    const question = 'Who waits at the gate'
    const chats = () => portal.mock.requests.filter((body) => JSON.stringify(body).includes(question)).length
    await ask(visitor, question)
    await eventually(() => chats() === 1)
    network.freeze()
    await other.drop([{ name: 'letter.txt', bytes: Buffer.from('The harbour was built in 1931.') }])
    await visitor.page.getByText(LOST).first().waitFor()
    portal.mock.openGate()
    await network.stop()
    await network.resume()
    await visitor.page.getByRole('log').getByText('Hello from the mock').waitFor()
    await other.page.locator('main tbody tr', { hasText: 'letter.txt' }).getByText('Ready', { exact: true }).waitFor()
    for (const { page } of [visitor, other]) await page.getByText(LOST).first().waitFor({ state: 'hidden' })
    expect(chats()).toBe(1)
  }, 120_000)

  it.concurrent.each([
    ['the text of an answer', 'markdown', '[role=log] p >> text=Hello from the mock'],
    ['the settings of an agent', 'settings', 'form'],
    ['the versions of an agent', 'versions', 'section h2 >> text=Versions'],
  ])(
    'asks again for the module of %s when the network breaks',
    async (_what, module, shown) => {
      const agent = await newAgent()
      await using visitor = await portal.come()
      let asked = 0
      await visitor.page.route(new RegExp(`/assets/${module}-[^/]*\\.js`), (route) => (++asked <= 2 ? route.abort() : route.continue()))
      await visitor.signIn(owner.key, `/agents/${agent.id}${module === 'markdown' ? '' : '?tab=settings'}`)
      if (module === 'markdown') await ask(visitor, 'How high is the lighthouse?')
      // Until its module is there, an answer is shown as it is.
      await eventually(() => asked === 3, 30_000)
      await visitor.page.getByText(LOST).first().waitFor({ state: 'hidden' })
      await visitor.page.locator(`main ${shown}`).first().waitFor()
    },
    60_000,
  )

  it('signs out: the cookie ends, and so does what it opened', async () => {
    await using visitor = await portal.come({ key: owner.key })
    await visitor.page.getByRole('button', { name: 'First admin key' }).click()
    await visitor.page.getByRole('menuitem', { name: 'Sign out' }).click()
    await visitor.page.waitForURL((url) => url.pathname === '/sign-in')
    expect((await visitor.context.cookies()).filter(({ name }) => name === 'kis_session')).toEqual([])
    await visitor.open('/models')
    expect(await pathOf(visitor)).toBe('/sign-in')
  })

  it('retries a failed run with one click', async () => {
    const agent = await newAgent()
    await using visitor = await portal.come({ key: owner.key, path: `/agents/${agent.id}` })
    const log = visitor.page.getByRole('log')
    portal.mock.failWith(500)
    await ask(visitor, 'How high is the lighthouse?')
    await log.getByRole('alert').waitFor()
    portal.mock.failWith(null)
    await log.getByRole('button', { name: 'Try again' }).click()
    await log.getByText('Hello from the mock').waitFor()
    await log.getByRole('alert').getByRole('button').waitFor()
  })

  // This waits until the page asks again by itself. No other test beside it closes the gate.
  it.concurrent('shows changes of a document from before the events began', async () => {
    portal.mock.closeGate()
    const { id } = await newCollection(owner, 'mock-embed-gate')
    await using visitor = await portal.come()
    const begin = Promise.withResolvers<void>()
    let isAsked = false
    // The events come by it.
    await visitor.page.route(/\/assets\/socket-[^/]*\.js/, async (route) => {
      isAsked = true
      await begin.promise
      await route.continue()
    })
    await visitor.signIn(owner.key)
    const work = addDocument(owner, id, 'letter.txt', 'The harbour was built in 1931.')
    await eventually(async () => (await owner.rest('GET', `/v1/collections/${id}/documents`)).body.data.length === 1)
    await visitor.open(`/collections/${id}`)
    const row = visitor.page.locator('main tbody tr', { hasText: 'letter.txt' })
    await row.waitFor()
    const ready = row.getByText('Ready', { exact: true })
    expect(await ready.isVisible()).toBe(false)
    portal.mock.openGate()
    expect((await work).status).toBe('ready')
    await eventually(() => isAsked)
    begin.resolve()
    await ready.waitFor()
  })

  it.concurrent('reports failures of the service, and retries on request', async () => {
    await using visitor = await portal.come({ key: owner.key })
    await visitor.page.route(GRAPHQL, (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/json',
        body: JSON.stringify({ errors: [{ message: 'Busy.', extensions: { code: 'SERVICE_UNAVAILABLE' } }] }),
      }),
    )
    await visitor.page.locator('nav a[href="/models"]').first().click()
    await visitor.page.getByText('The service is busy or starting. Try again soon.').first().waitFor()
    await visitor.page.unroute(GRAPHQL)
    await visitor.page.getByRole('button', { name: 'Try again' }).first().click()
    await visitor.page.getByText('mock-chat').first().waitFor()
  })

  it.concurrent('shows a loading state on a slow network', async () => {
    await using visitor = await portal.come({ key: owner.key })
    const gate = Promise.withResolvers<void>()
    await visitor.page.route(GRAPHQL, async (route) => {
      await gate.promise
      await route.continue()
    })
    await visitor.page.locator('nav a[href="/models"]').first().click()
    await visitor.page.waitForURL((url) => url.pathname === '/models')
    await eventually(async () => (await visitor.page.locator('main').textContent())?.includes('Loading…') ?? false)
    gate.resolve()
    await visitor.page.getByText('mock-chat').first().waitFor()
  })

  it.concurrent('keeps an opened field while its options load', async () => {
    await using visitor = await portal.come({ key: owner.key, path: '/agents' })
    const { page } = visitor
    const gate = Promise.withResolvers<void>()
    await page.route(GRAPHQL, async (route) => {
      await gate.promise
      await route.continue()
    })
    await page.getByRole('link', { name: 'Create an agent' }).first().click()
    await page.getByLabel('Model', { exact: true }).click()
    await page.getByRole('combobox', { name: 'Choose a model' }).waitFor()
    gate.resolve()
    await page.getByRole('option', { name: /mock-chat/ }).click()
    await page
      .getByLabel('Model', { exact: true })
      .getByText(/mock-chat/)
      .waitFor()
  })

  it.concurrent('changes the language without a reload by the menu, and remembers it', async () => {
    await using visitor = await portal.come({ key: owner.key, path: '/models' })
    await visitor.page.evaluate('window.isSamePage = true')
    await visitor.page.getByRole('button', { name: 'Language and display' }).first().click()
    await visitor.page.getByRole('menuitemradio', { name: 'العربية' }).click()
    await visitor.page.keyboard.press('Escape')
    await visitor.page.getByRole('heading', { name: 'النماذج' }).first().waitFor()
    const read = () =>
      visitor.page.evaluate<string>('[document.documentElement.lang, document.documentElement.dir, window.isSamePage].join(" ")')
    expect(await read()).toBe('ar rtl true')
    await visitor.page.reload()
    await visitor.settle()
    expect(await read()).toBe('ar rtl ')
  })

  it.concurrent('shows names with markup and overlong names safely', async () => {
    for (const name of HOSTILE) {
      const { key } = (await portal.operator.rest('POST', '/v1/organizations', { name })).body
      await using visitor = await portal.come({ key })
      for (const width of [360, 1440]) {
        await visitor.page.setViewportSize({ width, height: 900 })
        expect(await visitor.page.evaluate('window.wasRun ?? false')).toBe(false)
        expect(await visitor.findOverflow(), name).toEqual([])
        const shown = await visitor.page.evaluate<boolean>(
          `[...document.querySelectorAll('bdi, [dir=auto]')].some((element) => element.textContent === ${JSON.stringify(name)})`,
        )
        expect(shown, name).toBe(true)
      }
    }
  })
}
