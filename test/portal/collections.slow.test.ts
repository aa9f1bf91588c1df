import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BrowserPackages, startBrowser } from '../browser/packages.ts'
import { type Caller, newOrganization } from '../support/client.ts'
import { LANGUAGES, type Language } from './support/pages.ts'
import { type RunningPortal, startPortal } from './support/portal.ts'
import { Visitor } from './support/visitor.ts'

const ENGLISH = '# The harbour\n\nThe harbour was built in 1931. The lighthouse is 40 metres high.\n'
const ARABIC = '# الميناء\n\nبُني الميناء عام ١٩٣١. يبلغ ارتفاع المنارة أربعين مترًا.\n'
const WORDS: Readonly<Record<Language, { readonly create: string; readonly createAction: string; readonly ready: string }>> = {
  en: { create: 'New collection', createAction: 'Create the collection', ready: 'Ready' },
  ar: { create: 'مجموعة جديدة', createAction: 'إنشاء المجموعة', ready: 'جاهز' },
}

const started = await startBrowser()
const missing = 'reason' in started ? started.reason : null

describe.skipIf(missing !== null)(`collections in the portal in Chromium${missing === null ? '' : ` (${missing})`}`, () => {
  const { browser } = started as BrowserPackages
  let portal: RunningPortal
  let owner: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    portal = await startPortal()
    owner = await newOrganization(portal.operator, portal.service, { name: 'Harbour Museum' })
  }, 240_000)
  afterAll(async () => {
    await browser?.close()
    await portal?.[Symbol.asyncDispose]()
  })

  for (const language of LANGUAGES)
    it(`are created, take an Arabic and an English file, and show by themselves when both are ready (${language})`, async () => {
      const words = WORDS[language]
      await using visitor = await Visitor.come(browser, portal.service.rest, { language })
      const { page } = visitor
      await visitor.signIn(owner.key, '/collections')
      await page.getByRole('button', { name: words.create }).first().click()
      const dialog = page.locator('[role=dialog]')
      await dialog.locator('input').first().fill(`Harbour ${language}`)
      await dialog.getByText('e5-small-ar-en').first().click()
      await dialog.getByRole('button', { name: words.createAction }).click()
      await page.waitForURL(/\/collections\/col_/)
      await visitor.settle()

      await page
        .locator('input[type=file]')
        .first()
        .setInputFiles([
          { name: 'harbour.md', mimeType: 'text/markdown', buffer: Buffer.from(ENGLISH) },
          { name: 'الميناء.md', mimeType: 'text/markdown', buffer: Buffer.from(ARABIC) },
        ])
      for (const name of ['harbour.md', 'الميناء.md'])
        await page.locator('tr', { hasText: name }).getByText(words.ready, { exact: true }).first().waitFor()
      const [id] = /col_\w+/.exec(await page.evaluate<string>('location.pathname'))!
      const { data } = await owner.graphql('query ($id: ID!) { collection(id: $id) { documentCounts { ready failed } } }', { id })
      expect(data.collection.documentCounts).toEqual({ ready: 2, failed: 0 })
      expect(visitor.foreign).toEqual([])
      expect(await visitor.findBarriers()).toEqual([])
    }, 120_000)
})
