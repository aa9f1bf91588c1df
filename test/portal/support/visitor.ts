import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Context, Page } from '../../browser/packages.ts'
import { createCaller } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import type { Language, PAGES, Theme } from './pages.ts'
import { wordsOf } from './words.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** On two busy cores. */
const WAIT_MS = 30_000
const HEIGHT = 900
/** Browsers whose visitors have left, by language: their caches have the portal's files. */
const idle: Record<Language, Context[]> = { en: [], ar: [] }
/** What WCAG 2.2 AA asks for, as axe names it. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** The rules of axe that a theme can break, which changes colors alone. */
export const COLOR_RULES = ['color-contrast', 'link-in-text-block']

export interface Visit {
  readonly language?: Language
  readonly theme?: Theme
  readonly width?: number
}

/** A file of the reader's own computer. */
export interface OwnFile {
  readonly name: string
  readonly bytes: Buffer
}

/** A serious or critical finding of axe: the rule, and the elements that break it. */
export interface Finding {
  readonly rule: string
  readonly impact: string
  readonly targets: readonly string[]
}

/** Somebody with a browser of their own at the portal of a service. */
export class Visitor implements AsyncDisposable {
  readonly page: Page
  readonly context: Context
  readonly #origin: string
  readonly #language: Language
  readonly #say: ReturnType<typeof wordsOf>
  /** Errors of scripts, and what the console calls errors, such as a violation of the Content-Security-Policy. */
  readonly errors: string[] = []
  /** Requests to anybody but the service. */
  readonly external: string[] = []
  /** How many searches the pages asked for. */
  searches = 0

  private constructor(page: Page, context: Context, origin: string, language: Language) {
    this.page = page
    this.context = context
    this.#origin = origin
    this.#language = language
    this.#say = wordsOf(language)
    page.on('pageerror', (error) => this.errors.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text())
    })
    page.on('request', (request) => {
      if (request.postData()?.includes('searchCollection')) this.searches++
      if (!/^(?:blob|data):/.test(request.url()) && new URL(request.url()).host !== new URL(origin).host) this.external.push(request.url())
    })
  }

  static async come(browser: Browser, origin: string, { language = 'en', theme = 'light', width = 1440 }: Visit = {}): Promise<Visitor> {
    const locale = language === 'ar' ? 'ar-SA' : 'en-US'
    const context = idle[language].pop() ?? (await browser.newContext({ locale, reducedMotion: 'reduce' }))
    const page = await context.newPage()
    await page.setViewportSize({ width, height: HEIGHT })
    await page.emulateMedia({ colorScheme: theme })
    return new Visitor(page, context, origin, language)
  }

  /** Opens a path of the portal, and waits until it has loaded what it shows first. */
  async open(path: string): Promise<void> {
    await this.page.goto(`${this.#origin}${path}`)
    await this.settle()
  }

  /** Waits until the page has a heading and nothing on it is loading. The page's policy refuses Playwright's own waiting. */
  async settle(): Promise<void> {
    const isSettled =
      'document.querySelector("h1, main h2, main [role=alert]") !== null && !document.querySelector("[aria-busy=true], .animate-pulse.bg-hover") && document.fonts.status === "loaded"'
    // A page that is on its way to another cannot be asked.
    await eventually(() => this.page.evaluate<boolean>(isSettled).catch(() => false), WAIT_MS)
  }

  /** Comes in with the session of a key, as if it had been typed before. */
  async signIn(key: string, path = '/home'): Promise<void> {
    const { cookie } = await createCaller({ rest: this.#origin, graphql: `${this.#origin}/graphql` }, key).signIn()
    const [name, value] = cookie.split('=') as [string, string]
    await this.context.addCookies([{ name, value, url: this.#origin }])
    await this.open(path)
  }

  /** Opens a page by its entry in the navigation, which a phone has behind a button. */
  async go(name: (typeof PAGES)[number]): Promise<void> {
    const menu = this.page.getByRole('button', { name: this.#say('shell.menu') })
    if (await menu.isVisible()) await menu.click()
    await this.page
      .getByRole('navigation')
      .getByRole('link', { name: this.#say(`${name}.title`), exact: true })
      .click()
    await this.page.waitForURL((url) => url.pathname === `/${name}`, { timeout: WAIT_MS })
    await this.settle()
  }

  /** Drops files on the place for them. */
  async drop(files: readonly OwnFile[]): Promise<void> {
    const dropped = files.map(({ name, bytes }) => ({ name, content: bytes.toString('base64') }))
    await this.page.getByRole('button', { name: this.#say('documents.choose') }).waitFor()
    await this.page.evaluate(`(() => {
      const dataTransfer = new DataTransfer()
      for (const { name, content } of ${JSON.stringify(dropped)})
        dataTransfer.items.add(new File([Uint8Array.from(atob(content), (each) => each.charCodeAt(0))], name))
      const place = document.querySelector('main input[type=file]').parentElement
      for (const type of ['dragover', 'drop']) place.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }))
    })()`)
  }

  /** Leaves, so that another key can come in. */
  async signOut(): Promise<void> {
    await this.page.evaluate(`fetch('/session', { method: 'DELETE' })`)
  }

  /** Shows the portal in a language and a theme, as the menu of preferences keeps them. */
  async prefer(preferences: { readonly language?: Language; readonly theme?: Theme }): Promise<void> {
    await this.page.evaluate(
      `localStorage.setItem('kis_preferences', JSON.stringify({ ...JSON.parse(localStorage.getItem('kis_preferences') ?? '{}'), ...${JSON.stringify(preferences)} }))`,
    )
    await this.page.reload()
    await this.settle()
  }

  /** The serious and critical findings of axe on what is shown. */
  async findBarriers(rules: readonly string[] = RULES): Promise<readonly Finding[]> {
    // What is half under the page's bar would count as too small.
    const hasAxe = await this.page.evaluate<boolean>('window.scrollTo(0, 0); typeof axe !== "undefined"')
    // As an evaluation it needs no place in the page's policy.
    if (!hasAxe) await this.page.evaluate(AXE)
    return this.page.evaluate<readonly Finding[]>(
      `axe.run(document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ['violations'] }).then(({ violations }) => violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, impact, nodes }) => ({ rule: id, impact, targets: nodes.map(({ target, html }) => target.join(' ') + ' ' + html.slice(0, 200)) })))`,
    )
  }

  /** Elements that reach beyond the window, which then scrolls sideways or hides them. */
  findOverflow(): Promise<readonly string[]> {
    return this.page.evaluate<readonly string[]>(`(() => {
      const width = document.documentElement.clientWidth
      if (document.documentElement.scrollWidth <= width) return []
      return [...document.querySelectorAll('body *')]
        .filter((element) => { const { left, right, width: own } = element.getBoundingClientRect(); return own > 0 && (left < -1 || right > width + 1) })
        .filter((element) => !element.closest('[class*="overflow-"]') && getComputedStyle(element).position !== 'fixed')
        .slice(0, 5)
        .map((element) => element.outerHTML.slice(0, 160))
    })()`)
  }

  /** Leaves nothing of oneself to whoever has the browser next. */
  async [Symbol.asyncDispose](): Promise<void> {
    const session = await this.context.newCDPSession(this.page)
    await session.send('Storage.clearDataForOrigin', { origin: this.#origin, storageTypes: 'local_storage' })
    await this.context.clearCookies()
    await this.page.close()
    idle[this.#language].push(this.context)
  }
}
