import { readFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import { addDocument, type Caller } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { LANGUAGES } from '../support/pages.ts'
import { isSound, type SharedPortal } from '../support/shared-portal.ts'
import { wordsOf } from '../support/words.ts'

/** The web, versions and watches of a collection. */
export function knowledge(portal: SharedPortal): void {
  let owner: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    owner = await portal.newTenant()
  })

  it.concurrent.each(LANGUAGES)(
    'are shown and changed, and failures show the reason in the language of the reader (%s)',
    async (language) => {
      const say = wordsOf(language)
      const { body } = await owner.rest('POST', '/v1/collections', {
        collection_code: `harbour-${language}`,
        collection_name: 'Harbour',
        embedding_model: 'e5-small-ar-en',
      })
      const { id: documentId } = await addDocument(owner, body.id, 'plan.md', '# Plan\n\nThe first plan of the harbour.')
      await using visitor = await portal.come({ language, key: owner.key, path: `/collections/${body.id}?tab=web` })
      const { page } = visitor

      const form = page.getByRole('form', { name: say('documents.webAdd') })
      const fetchIt = form.getByRole('button', { name: say('documents.webFetch') })
      const url = form.getByLabel(say('documents.webUrl'))
      await url.fill(`${portal.site}/none`)
      await fetchIt.click()
      await form.getByText(say('error.invalid_request.url')).waitFor()
      await form.getByText(language === 'ar' ? /برمز الحالة ٤٠٤/ : /status 404/).waitFor()
      await isSound(visitor)
      await url.fill(`${portal.site}/harbour`)
      await fetchIt.click()
      await page.locator('main tbody tr', { hasText: '/harbour' }).getByText(say('documents.webFetched'), { exact: true }).waitFor()
      await isSound(visitor)

      await visitor.open(`/collections/${body.id}/documents/${documentId}?view=versions`)
      await page
        .locator('input[type=file]')
        .first()
        .setInputFiles([{ name: 'plan-2.md', mimeType: 'text/markdown', buffer: Buffer.from('# Plan\n\nThe second plan of the harbour.') }])
      await page.locator('main tbody tr', { hasText: 'plan.md' }).waitFor()
      await isSound(visitor)

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
      await isSound(visitor)
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.getByRole('table', { name: say('evaluation.scoresLabel') }).waitFor()
      await page.getByRole('button', { name: say('evaluation.watchAction') }).click()
      const dialog = page.getByRole('dialog', { name: say('evaluation.watch') })
      await dialog.getByRole('button', { name: say('evaluation.addMode') }).click()
      await isSound(visitor)
      await dialog.getByRole('button', { name: say('common.save') }).click()
      await dialog.waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: say('evaluation.watchStop') }).waitFor()
      await isSound(visitor)
      const { data } = await owner.graphql(
        'query ($id: ID!, $document: ID!) { collection(id: $id) { evaluationWatch { settings { mode } maxFall } } document(id: $document) { version } }',
        { id: body.id, document: documentId },
      )
      expect(data).toEqual({
        collection: { evaluationWatch: { settings: [{ mode: 'HYBRID' }, { mode: 'VECTOR' }], maxFall: 0.05 } },
        document: { version: 2 },
      })
      expect(visitor.external).toEqual([])
    },
    120_000,
  )
}
