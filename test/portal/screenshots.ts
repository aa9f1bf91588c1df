// `npm run portal:screenshots`: a picture of every page, tab, drawer and dialog in each language, theme and width, in
// `portal/screenshots/`. It prints what is wrong: barriers, errors, what is too wide. Names after the command choose
// scenes by how they begin.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, startBrowser } from '../browser/packages.ts'
import { openGallery } from './support/gallery.ts'
import { LANGUAGES, type Language } from './support/pages.ts'
import { SCENES, type Scene } from './support/scenes.ts'
import { Visitor } from './support/visitor.ts'
import { wordsOf } from './support/words.ts'

const FOLDER = fileURLToPath(new URL('../../portal/screenshots', import.meta.url))
/** A phone, a desktop; and, for pages whose layout changes there, a screen of 4K. */
const WIDTHS = [360, 1440] as const
const WIDEST = { width: 3840, scenes: ['home', 'usage', 'collection-documents', 'workflow-graph'] }
/** Of the window. A page that is longer is shown whole. */
const HEIGHT = 900
/** What is pressed is there at once. */
const ACT_MS = 8_000
/** How long what moves in takes to stand still. */
const MOVE_MS = 250

const wanted = process.argv.slice(2)
const scenes = SCENES.filter(({ name }) => wanted.length === 0 || wanted.some((start) => name.startsWith(start)))
const started = await startBrowser()
if ('reason' in started) throw new Error(started.reason)
if (wanted.length === 0) rmSync(FOLDER, { recursive: true, force: true })
mkdirSync(FOLDER, { recursive: true })
await using gallery = await openGallery()

async function shoot(browser: Browser, language: Language): Promise<void> {
  for (const as of new Set(scenes.map((scene) => scene.as))) {
    await using visitor = await Visitor.come(browser, gallery.portal.service.rest, { language })
    visitor.page.setDefaultTimeout(ACT_MS)
    if (as !== null) await visitor.signIn(gallery.keys[as ?? 'owner'])
    for (const scene of scenes.filter((each) => each.as === as)) {
      visitor.errors.length = 0
      await shootScene(visitor, scene, language).catch((error) => console.log(`${scene.name} ${language}: ${String(error).split('\n')[0]}`))
      for (const error of visitor.errors) console.log(`${scene.name} ${language}: ${error}`)
    }
  }
}

async function shootScene(visitor: Visitor, { name, path, act, width: only }: Scene, language: Language): Promise<void> {
  const { page } = visitor
  const address = path.replace(/\{(\w+)\}/g, (_, id: string) => gallery.ids[id]!)
  const widths = only ? [only] : [...WIDTHS, ...(WIDEST.scenes.includes(name) ? [WIDEST.width] : [])]
  for (const width of widths) {
    await page.setViewportSize({ width, height: HEIGHT })
    // What is pressed may be elsewhere on another width.
    if (width === widths[0] || act) {
      await visitor.open(address)
      if (act)
        await act(page, wordsOf(language)).catch((error) => console.log(`${name} ${language} ${width}: ${String(error).split('\n')[0]}`))
    }
    await new Promise((resolve) => setTimeout(resolve, MOVE_MS))
    await visitor.settle()
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await page.screenshot({ path: join(FOLDER, `${name}-${width}-${language}-${theme}.png`), fullPage: true, animations: 'disabled' })
    }
    for (const { rule, targets } of await visitor.findBarriers())
      console.log(`${name} ${language} ${width}: ${rule}: ${targets.join(' | ')}`)
    for (const element of await visitor.findOverflow()) console.log(`${name} ${language} ${width}: too wide: ${element}`)
  }
}

await Promise.all(LANGUAGES.map((language) => shoot(started.browser, language)))
await started.browser.close()
console.log(`The pictures are in ${FOLDER}`)
