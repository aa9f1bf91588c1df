import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BrowserPackages, startBrowser } from '../browser/packages.ts'
import { addDocument, type Caller, newOrganization } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { LANGUAGES } from './support/pages.ts'
import { type RunningPortal, startPortal } from './support/portal.ts'
import { Visitor } from './support/visitor.ts'
import { wordsOf } from './support/words.ts'

const started = await startBrowser()
const missing = 'reason' in started ? started.reason : null
/** Where to keep pictures of the pages, to look at. */
const PICTURES = process.env.KIS_TEST_PICTURES

describe.skipIf(missing !== null)(
  `the web, versions and watches of a collection in Chromium${missing === null ? '' : ` (${missing})`}`,
  () => {
    const { browser } = started as BrowserPackages
    const site = createServer((request, response) => {
      const isThere = request.url === '/harbour'
      response.writeHead(isThere ? 200 : 404, { 'content-type': 'text/html' })
      response.end('<title>Harbour</title><main><p>The harbour opens at six in the morning, every day of the year.</p></main>')
    })
    let portal: RunningPortal
    let owner: Caller & { readonly organizationId: string }
    let address: string
    beforeAll(async () => {
      await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
      const host = `127.0.0.1:${(site.address() as AddressInfo).port}`
      address = `http://${host}`
      portal = await startPortal({ KIS_EGRESS_ALLOW: host })
      owner = await newOrganization(portal.operator, portal.service, { name: 'Harbour Museum' })
    }, 240_000)
    afterAll(async () => {
      await browser?.close()
      await portal?.[Symbol.asyncDispose]()
      site.close()
    })

    it.each(LANGUAGES)(
      'are shown and changed, and what fails says why in the words of the reader (%s)',
      async (language) => {
        const say = wordsOf(language)
        const { body } = await owner.rest('POST', '/v1/collections', {
          collection_code: `harbour-${language}`,
          collection_name: 'Harbour',
          embedding_model: 'e5-small-ar-en',
        })
        const { id: documentId } = await addDocument(owner, body.id, 'plan.md', '# Plan\n\nThe first plan of the harbour.')
        await using visitor = await Visitor.come(browser, portal.service.rest, { language })
        const { page } = visitor
        const keep = async (name: string) => {
          if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}-${language}.png`, fullPage: true, animations: 'disabled' })
          expect(await visitor.findBarriers()).toEqual([])
        }

        await visitor.signIn(owner.key, `/collections/${body.id}?tab=web`)
        const form = page.getByRole('form', { name: say('documents.webAdd') })
        const fetchIt = form.getByRole('button', { name: say('documents.webFetch') })
        const url = form.getByLabel(say('documents.webUrl'))
        await url.fill(`${address}/none`)
        await fetchIt.click()
        await form.getByText(say('error.invalid_request.url')).waitFor()
        await form.getByText(language === 'ar' ? /برمز الحالة ٤٠٤/ : /status 404/).waitFor()
        await keep('web-refused')
        await url.fill(`${address}/harbour`)
        await fetchIt.click()
        await page.locator('main tbody tr', { hasText: '/harbour' }).getByText(say('documents.webFetched'), { exact: true }).waitFor()
        await keep('web')

        await visitor.open(`/collections/${body.id}/documents/${documentId}?view=versions`)
        await page
          .locator('input[type=file]')
          .first()
          .setInputFiles([
            { name: 'plan-2.md', mimeType: 'text/markdown', buffer: Buffer.from('# Plan\n\nThe second plan of the harbour.') },
          ])
        await page.locator('main tbody tr', { hasText: 'plan.md' }).waitFor()
        await keep('versions')

        await visitor.open(`/collections/${body.id}/documents/${documentId}`)
        const download = page.waitForEvent('download')
        await page.getByRole('button', { name: say('document.download'), exact: true }).click()
        expect(readFileSync(await (await download).path(), 'utf8')).toBe('# Plan\n\nThe second plan of the harbour.')

        const expected = [{ phrase: 'opens at six' }]
        await owner.rest('POST', `/v1/collections/${body.id}/gold-questions`, { questions: [{ query: 'When does it open?', expected }] })
        const evaluation = await owner.rest('POST', `/v1/collections/${body.id}/evaluations`, {
          settings: [{ mode: 'hybrid' }, { mode: 'lexical' }],
        })
        await eventually(async () => (await owner.rest('GET', `/v1/evaluations/${evaluation.body.id}`)).body.status === 'completed', 30_000)
        await page.setViewportSize({ width: 360, height: 900 })
        await visitor.open(`/collections/${body.id}?tab=evaluation`)
        const card = page.getByRole('list', { name: say('evaluation.scoresLabel') }).getByRole('listitem')
        expect(await card.first().getByRole('definition').count()).toBe(6)
        await page.getByRole('button', { name: say('evaluation.byQuestion') }).click()
        await page
          .getByRole('list', { name: say('evaluation.byQuestion') })
          .getByText('When does it open?')
          .waitFor()
        expect(await page.getByText(say('common.scrollTable')).count()).toBe(0)
        expect(await visitor.findOverflow()).toEqual([])
        await keep('scores')
        await page.setViewportSize({ width: 1440, height: 900 })
        await page.getByRole('table', { name: say('evaluation.scoresLabel') }).waitFor()
        await page.getByRole('button', { name: say('evaluation.watchAction') }).click()
        const dialog = page.getByRole('dialog', { name: say('evaluation.watch') })
        await dialog.getByRole('button', { name: say('evaluation.addMode') }).click()
        await keep('watch-form')
        await dialog.getByRole('button', { name: say('common.save') }).click()
        await dialog.waitFor({ state: 'hidden' })
        await page.getByRole('button', { name: say('evaluation.watchStop') }).waitFor()
        await keep('watch')
        const { data } = await owner.graphql(
          'query ($id: ID!, $document: ID!) { collection(id: $id) { evaluationWatch { settings { mode } maxFall } } document(id: $document) { version } }',
          { id: body.id, document: documentId },
        )
        expect(data).toEqual({
          collection: { evaluationWatch: { settings: [{ mode: 'HYBRID' }, { mode: 'VECTOR' }], maxFall: 0.05 } },
          document: { version: 2 },
        })
        expect(visitor.foreign).toEqual([])
      },
      120_000,
    )
  },
)
