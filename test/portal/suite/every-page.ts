import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import type { Caller } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { LANGUAGES, type Language, PAGES, THEMES, WIDTHS } from '../support/pages.ts'
import { furnishedOrganization } from '../support/portal.ts'
import type { SharedPortal } from '../support/shared-portal.ts'
import { COLOR_RULES } from '../support/visitor.ts'

const DIST = new URL('../../../portal/dist/', import.meta.url)
const FIRST_LOAD_BYTES = 250 * 1024
const WRONG_KEY: Readonly<Record<Language, string>> = {
  en: 'This key is not valid. Check that you copied all of it.',
  ar: JSON.parse(readFileSync(new URL('../../../portal/web/messages/ar/errors.json', import.meta.url), 'utf8'))['error.invalid_api_key'],
}
const NOT_FOUND = 'There is nothing here'

export function everyPage(portal: SharedPortal): void {
  let owner: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    owner = await furnishedOrganization(portal)
  })

  /** Pages that no walk looks at with axe. */
  const deeperPages = async (): Promise<readonly string[]> => {
    const idOf = async (path: string): Promise<string> => (await owner.rest('GET', path)).body.data[0].id
    const collection = `/collections/${await idOf('/v1/collections')}`
    const document = `${collection}/documents/${await idOf(`/v1${collection}/documents?status=ready`)}`
    const runs = `/agents/${await idOf('/v1/agents')}?tab=runs`
    return [`${collection}?tab=settings`, document, runs, '/models?model=mock-chat', '/organization?tab=sessions']
  }

  it('signs in by an API key, and stores an HttpOnly cookie and no key', async () => {
    await using visitor = await portal.come()
    await visitor.open('/')
    expect(new URL(await visitor.page.evaluate<string>('location.href')).pathname).toBe('/sign-in')
    await visitor.page.getByLabel('API key', { exact: true }).fill(owner.key)
    await visitor.page.locator('form button[type=submit]').click()
    await visitor.page.waitForURL((url) => url.pathname === '/home')
    await visitor.settle()
    expect(await visitor.context.cookies()).toContainEqual(
      expect.objectContaining({ name: 'kis_session', httpOnly: true, sameSite: 'Strict', value: expect.not.stringContaining(owner.key) }),
    )
    const kept = await visitor.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')
    expect(kept).not.toContain(owner.key)
    await visitor.page.reload()
    await visitor.settle()
    expect(await visitor.page.evaluate<string>('location.pathname')).toBe('/home')
    expect(visitor.external).toEqual([])
    // The console names the answer 401 to whoever is not signed in yet.
    expect(visitor.errors.filter((error) => !/401/.test(error))).toEqual([])
  })

  for (const language of LANGUAGES)
    it(`reports a wrong key in one sentence (${language})`, async () => {
      await using visitor = await portal.come({ language })
      await visitor.open('/sign-in')
      await visitor.page.locator('input[type=password]').fill(`${owner.key.slice(0, -1)}${owner.key.endsWith('x') ? 'y' : 'x'}`)
      await visitor.page.locator('form button[type=submit]').click()
      await visitor.page.getByText(WRONG_KEY[language], { exact: true }).first().waitFor()
      const direction = await visitor.page.evaluate<string>('document.documentElement.dir + " " + document.documentElement.lang')
      expect(direction).toBe(language === 'ar' ? 'rtl ar' : 'ltr en')
    })

  it('reaches every page by the keyboard alone', async () => {
    await using visitor = await portal.come()
    await visitor.open('/sign-in')
    await visitor.page.locator('input[type=password]').fill(portal.operator.key)
    await visitor.page.keyboard.press('Enter')
    await visitor.page.waitForURL((url) => url.pathname === '/home')
    await visitor.settle()
    for (const name of PAGES) {
      await visitor.page.evaluate('document.activeElement?.blur()')
      let focused = ''
      for (let presses = 0; presses < 60 && focused !== `/${name}`; presses++) {
        await visitor.page.keyboard.press('Tab')
        focused =
          (await visitor.page.evaluate<string | null>(
            'document.activeElement?.closest("nav") && document.activeElement.getAttribute("href")',
          )) ?? ''
      }
      expect(focused).toBe(`/${name}`)
      // Where the focus is can be seen.
      const ring = await visitor.page.evaluate<string>(
        '(({ outlineStyle, outlineWidth, boxShadow }) => [outlineStyle, outlineWidth, boxShadow].join(" "))(getComputedStyle(document.activeElement))',
      )
      expect(ring).not.toMatch(/^none \S+ none$/)
      await visitor.page.keyboard.press('Enter')
      await visitor.page.waitForURL((url) => url.pathname === `/${name}`)
      // A page that opens takes the focus, from whatever has it then. This one is open already.
      if (name !== 'home') await eventually(() => visitor.page.evaluate<boolean>('document.activeElement?.id === "main"'))
      await visitor.settle()
    }
  }, 120_000)

  for (const language of LANGUAGES)
    it(`has no serious accessibility issue, no error and no external request on any page, and fits each screen (${language})`, async () => {
      await using visitor = await portal.come({ language })
      const look = async (path: string) => {
        visitor.errors.length = 0
        await visitor.open(path)
        for (const colorScheme of THEMES) {
          await visitor.page.emulateMedia({ colorScheme })
          await eventually(() => visitor.page.evaluate<boolean>(`document.documentElement.dataset.theme === '${colorScheme}'`))
          const findings = await visitor.findBarriers(colorScheme === THEMES[0] ? undefined : COLOR_RULES)
          expect.soft(findings, `${path} ${colorScheme}`).toEqual([])
        }
        const direction = await visitor.page.evaluate<string>('getComputedStyle(document.querySelector("main")).direction')
        expect.soft(direction).toBe(language === 'ar' ? 'rtl' : 'ltr')
        for (const width of WIDTHS) {
          await visitor.page.setViewportSize({ width, height: 900 })
          expect.soft(await visitor.findOverflow(), `${path} ${width}`).toEqual([])
        }
      }
      const lookSignedIn = async (key: string, paths: readonly string[]) => {
        await visitor.signIn(key)
        for (const path of paths) {
          await look(path)
          expect.soft(visitor.errors, path).toEqual([])
        }
        await visitor.signOut()
      }
      await look('/sign-in')
      await lookSignedIn(owner.key, [...PAGES.filter((name) => name !== 'operator').map((name) => `/${name}`), ...(await deeperPages())])
      await lookSignedIn(portal.operator.key, ['/operator', ...['health', 'queue', 'plans'].map((tab) => `/operator?tab=${tab}`)])
      expect.soft(visitor.external).toEqual([])
    }, 240_000)

  it('shows a link to an object of another organization as not found', async () => {
    const other = await portal.newTenant({ name: 'Other' })
    const theirs = (await owner.graphql('{ collections(first: 1) { edges { node { id } } } agents(first: 1) { edges { node { id } } } }'))
      .data
    const [collection, agent] = [theirs.collections.edges[0].node.id, theirs.agents.edges[0].node.id]
    await using visitor = await portal.come({ key: other.key })
    for (const [path, nothing] of [
      [`/collections/${collection}`, `/collections/${collection.replace(/.{6}$/, 'ffffff')}`],
      [`/agents/${agent}`, `/agents/${agent.replace(/.{6}$/, 'ffffff')}`],
    ] as const) {
      const shown: (string | null)[] = []
      for (const each of [path, nothing]) {
        await visitor.open(each)
        await visitor.page.getByText(NOT_FOUND).first().waitFor()
        shown.push(await visitor.page.locator('main').textContent())
      }
      expect(shown[0]).toBe(shown[1])
    }
  })

  it('shows a key only what its scopes allow, and names missing scopes', async () => {
    const { body } = await owner.rest('POST', '/v1/keys', { name: 'reader', scopes: ['knowledge:read'] })
    await using visitor = await portal.come({ key: body.key })
    expect(await visitor.page.locator('nav a[href="/keys"]').count()).toBe(0)
    await visitor.open('/keys')
    await visitor.page.getByText('You may not open this').first().waitFor()
  })

  it('serves the reference and GraphiQL with the session of the reader, from this service only', async () => {
    const { data } = await owner.graphql('{ viewer { id } }')
    await using visitor = await portal.come({ key: owner.key })
    const { page } = visitor
    visitor.errors.length = 0
    await page.goto(`${portal.service.rest}/docs`)
    await page.getByText('You are signed in').waitFor()
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await page.goto(`${portal.service.rest}/graphql?query=${encodeURIComponent('{ viewer { id } }')}`)
    await page.getByRole('button', { name: /^Execute query/ }).click()
    await page.getByText(data.viewer.id).waitFor()
    expect(visitor.errors).toEqual([])
    expect(visitor.external).toEqual([])
  })

  for (const language of LANGUAGES)
    it(`loads at most 250 KB, with its fonts, before the first page is shown (${language})`, async () => {
      await using visitor = await portal.come({ language })
      const files = new Set<string>()
      visitor.page.on('request', (request) => {
        const { pathname } = new URL(request.url())
        if (pathname.startsWith('/assets/')) files.add(pathname.slice(1))
      })
      await visitor.signIn(owner.key)
      expect([...files].filter((file) => file.endsWith('.woff2')).length).toBeGreaterThan(0)
      const sizeOf = (file: string) => {
        const bytes = readFileSync(new URL(file, DIST))
        return file.endsWith('.woff2') ? bytes.length : gzipSync(bytes, { level: 9 }).length
      }
      const bytes = [...files, 'index.html'].reduce((sum, file) => sum + sizeOf(file), 0)
      expect(bytes).toBeGreaterThan(50 * 1024)
      expect(bytes, [...files].join('\n')).toBeLessThanOrEqual(FIRST_LOAD_BYTES)
    })
}
