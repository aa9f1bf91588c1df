import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { modulesWith } from '../support/installed.ts'

/** A browser inside a package, what drives it, and what makes one script of a page's modules. */
const PACKAGES = { '@sparticuz/chromium': '153.0.0', esbuild: '0.28.2', 'playwright-core': '1.65.1' }
/** They make the browser share a process with its pages, which ends it with the first page that fails. */
const UNWANTED = /^--(?:single-process|no-zygote)$/
/** Drawing by a graphics processor that is none costs more than drawing without. */
const GRAPHICS = /^--(?:use-gl|use-angle|enable-unsafe-swiftshader|in-process-gpu|ignore-gpu)/

/** What the suites use of Playwright's browser. */
export interface Browser {
  newPage(): Promise<Page>
  newContext(options: { readonly locale: string; readonly reducedMotion: 'reduce' }): Promise<Context>
  close(): Promise<void>
}

/** A browser of its own: no other context has its cookies and its storage. */
export interface Context {
  newPage(): Promise<Page>
  /** Cuts the network of its pages, sockets too. */
  setOffline(isOffline: boolean): Promise<void>
  addCookies(cookies: readonly { readonly name: string; readonly value: string; readonly url: string }[]): Promise<void>
  clearCookies(): Promise<void>
  newCDPSession(page: Page): Promise<{ send(method: string, parameters: object): Promise<unknown> }>
  cookies(): Promise<readonly { readonly name: string; readonly httpOnly: boolean; readonly sameSite: string; readonly value: string }[]>
  close(): Promise<void>
}

export interface Page {
  readonly keyboard: { press(key: string): Promise<void> }
  goto(url: string): Promise<unknown>
  goBack(): Promise<unknown>
  url(): string
  close(): Promise<void>
  on(event: 'pageerror', listen: (error: Error) => void): void
  on(event: 'console', listen: (message: { type(): string; text(): string }) => void): void
  on(event: 'request', listen: (request: { url(): string; postData(): string | null }) => void): void
  evaluate<Result>(script: string): Promise<Result>
  waitForFunction(script: string, argument?: undefined, options?: { readonly timeout: number }): Promise<unknown>
  waitForURL(url: string | RegExp | ((url: URL) => boolean), options?: { readonly timeout: number }): Promise<void>
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>
  setDefaultTimeout(ms: number): void
  emulateMedia(media: { readonly colorScheme: 'light' | 'dark' }): Promise<void>
  screenshot(options: { readonly path: string; readonly fullPage: boolean; readonly animations: 'disabled' }): Promise<unknown>
  getByRole(role: string, options?: { readonly name?: string | RegExp; readonly exact?: boolean; readonly level?: number }): Locator
  getByLabel(text: string | RegExp, options?: { readonly exact?: boolean }): Locator
  getByText(text: string | RegExp, options?: { readonly exact?: boolean }): Locator
  locator(selector: string, options?: { readonly hasText: string | RegExp }): Locator
  reload(): Promise<unknown>
  waitForEvent(event: 'download'): Promise<{ path(): Promise<string> }>
  /** Answers the requests to an address in the place of the service. */
  route(url: RegExp, handler: (route: Route) => unknown): Promise<void>
  unroute(url: RegExp): Promise<void>
}

/** A request that a test may answer. */
export interface Route {
  fulfill(response: { readonly status: number; readonly contentType?: string; readonly body?: string }): Promise<void>
  continue(): Promise<void>
  /** Breaks it off, as a network does. */
  abort(): Promise<void>
}

/** What a test acts on. Playwright waits until it is there and can be used. */
export interface Locator {
  hover(): Promise<void>
  click(): Promise<void>
  fill(text: string): Promise<void>
  press(key: string): Promise<void>
  count(): Promise<number>
  isVisible(): Promise<boolean>
  first(): Locator
  last(): Locator
  textContent(): Promise<string | null>
  getAttribute(name: string): Promise<string | null>
  getByRole: Page['getByRole']
  getByLabel: Page['getByLabel']
  getByText: Page['getByText']
  locator: Page['locator']
  selectOption(value: string): Promise<unknown>
  setInputFiles(files: readonly { readonly name: string; readonly mimeType: string; readonly buffer: Buffer }[]): Promise<void>
  waitFor(options?: { readonly state?: 'visible' | 'hidden'; readonly timeout?: number }): Promise<void>
}

export interface BrowserPackages {
  readonly browser: Browser
  /** Makes one script of a module and what it imports. `modules`: the files of imports that are not packages, by name. */
  bundle(entry: string, modules: Readonly<Record<string, string>>): Promise<string>
}

/** The Chromium of the packages, as a program with its arguments; or why there is none. */
export async function findChromium(): Promise<{ readonly file: string; readonly args: readonly string[] } | { readonly reason: string }> {
  const modulesFolder = await modulesWith(PACKAGES)
  if ('reason' in modulesFolder) return modulesFolder
  const { default: chromium } = await import(
    pathToFileURL(createRequire(join(modulesFolder.modules, 'any.js')).resolve('@sparticuz/chromium')).href
  )
  const args = chromium.args.filter((argument: string) => !UNWANTED.test(argument) && !GRAPHICS.test(argument))
  return { file: await chromium.executablePath(), args: [...args, '--disable-gpu'] }
}

/** A Chromium that runs; or why there is none. The packages are installed once a machine. */
export async function startBrowser(): Promise<BrowserPackages | { readonly reason: string }> {
  const modulesFolder = await modulesWith(PACKAGES)
  if ('reason' in modulesFolder) return modulesFolder
  const { resolve } = createRequire(join(modulesFolder.modules, 'any.js'))
  const load = async (name: string) => {
    const module = await import(pathToFileURL(resolve(name)).href)
    return module.default ?? module
  }
  const [playwright, esbuild] = await Promise.all(['playwright-core', 'esbuild'].map(load))
  const chromium = await findChromium()
  if ('reason' in chromium) return chromium
  try {
    return {
      browser: await playwright.chromium.launch({
        executablePath: chromium.file,
        args: chromium.args,
        headless: true,
      }),
      async bundle(entry, modules) {
        const options = { bundle: true, write: false, format: 'esm', logLevel: 'silent' }
        const { outputFiles } = await esbuild.build({ entryPoints: [entry], alias: modules, ...options })
        return outputFiles[0].text
      },
    }
  } catch (error) {
    // Chromium needs libraries that not every machine has.
    return { reason: `Chromium does not start here: ${(error as Error).message.split('\n')[0]}` }
  }
}
