// `npm run portal:screenshots`: a picture of every page in each language, theme and width, in `portal/screenshots/`.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, startBrowser } from '../browser/packages.ts'
import { LANGUAGES, type Language, PAGES, THEMES, type Theme, WIDTHS } from './support/pages.ts'
import { furnishedOrganization, startPortal } from './support/portal.ts'
import { Visitor } from './support/visitor.ts'

const FOLDER = fileURLToPath(new URL('../../portal/screenshots', import.meta.url))
/** Names of pages to make, after the command. Default: all. */
const wanted = process.argv.slice(2)
const isWanted = (name: string) => wanted.length === 0 || wanted.includes(name)

const started = await startBrowser()
if ('reason' in started) throw new Error(started.reason)
rmSync(FOLDER, { recursive: true, force: true })
mkdirSync(FOLDER, { recursive: true })
await using portal = await startPortal()
const owner = await furnishedOrganization(portal)

async function shoot(browser: Browser, language: Language, theme: Theme): Promise<void> {
  await using visitor = await Visitor.come(browser, portal.service.rest, { language, theme })
  const picture = async (name: string, path: string) => {
    await visitor.open(path)
    for (const width of WIDTHS) {
      await visitor.page.setViewportSize({ width, height: 900 })
      await visitor.page.screenshot({
        path: join(FOLDER, `${name}-${language}-${theme}-${width}.png`),
        fullPage: true,
        animations: 'disabled',
      })
      for (const element of await visitor.findOverflow()) console.log(`${name} ${language} ${width}: too wide: ${element}`)
    }
  }
  if (isWanted('sign-in')) await picture('sign-in', '/sign-in')
  await visitor.signIn(owner.key)
  for (const name of PAGES) {
    if (name === 'operator') {
      await visitor.signOut()
      await visitor.signIn(portal.operator.key)
    }
    if (isWanted(name)) await picture(name, `/${name}`)
  }
  for (const error of visitor.errors) console.log(`${language} ${theme}: ${error}`)
}

for (const language of LANGUAGES) for (const theme of THEMES) await shoot(started.browser, language, theme)
await started.browser.close()
console.log(`The pictures are in ${FOLDER}`)
