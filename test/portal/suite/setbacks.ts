import PDFDocument from 'pdfkit'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Caller, type Json, newCollection } from '../../support/client.ts'
import { wav } from '../../support/data/audio.ts'
import { png } from '../../support/data/images.ts'
import { eventually } from '../../support/eventually.ts'
import { ENGLISH } from '../support/harbour.ts'
import { isSound, type SharedPortal } from '../support/shared-portal.ts'
import type { Visit, Visitor } from '../support/visitor.ts'
import { plain, wordsOf } from '../support/words.ts'

/** A process is started to parse a file, which takes a second on an idle machine. */
const PARSED_MS = 30_000
const QUESTION = 'How high is the lighthouse? كم ارتفاع المنارة؟'
/** What the service says of it, beside the portal. */
const NO_CREDIT = {
  en: 'The wallet cannot cover the most that this call may cost.',
  ar: 'لا تغطي المحفظة أقصى تكلفة محتملة لهذا الاستدعاء.',
}
/** What the vendor of the test always answers. */
const ANSWER = 'Hello from the mock'
const TEXT = { name: 'harbour.md', bytes: Buffer.from('# The harbour\n\nThe lighthouse is 40 metres high.\n') }
const PASSES = [
  { language: 'en', theme: 'dark', width: 1440 },
  { language: 'ar', theme: 'light', width: 360 },
] as const satisfies readonly Visit[]

type Say = ReturnType<typeof wordsOf>
/** A message with values that the test does not know. */
const pattern = (say: Say, id: string) =>
  new RegExp(
    say(id)
      .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
      .replace(/\{\w+\}/g, '.+'),
  )

export function setbacks(portal: SharedPortal): void {
  let locked: Buffer
  beforeAll(async () => {
    locked = await lockedPdf()
  })

  const come = (pass: Visit, { key }: Caller, path: string) => portal.come({ ...pass, key, path })
  const rowOf = ({ page }: Visitor, name: string) => page.locator('main tbody tr', { hasText: name })
  const isReady = (visitor: Visitor, say: Say, name: string) =>
    rowOf(visitor, name).getByText(say('documents.status.READY'), { exact: true }).waitFor()

  describe.each(PASSES)('in $language', (pass) => {
    const say = wordsOf(pass.language)

    it('an empty wallet is reported without a charge or loss of text; after a top-up the call continues', async () => {
      const tenant = await portal.newTenant({ creditUsd: '0' })
      const collection = await newCollection(tenant, 'mock-embed')
      const { body: agent } = await tenant.rest('POST', '/v1/agents', { code: 'guide', name: 'Guide', model: 'mock-chat' })
      const asked = portal.mock.requests.length

      await using visitor = await come(pass, tenant, `/collections/${collection.id}`)
      await visitor.drop([TEXT])
      await rowOf(visitor, TEXT.name).getByText(say('documents.error.INSUFFICIENT_QUOTA')).waitFor()
      await visitor.open('/models/mock-chat/try')
      await visitor.page.getByLabel(say('models.try.message'), { exact: true }).fill(QUESTION)
      await visitor.page.getByRole('button', { name: say('models.try.send'), exact: true }).click()
      const conversation = visitor.page.getByRole('region', { name: say('models.try.conversation') })
      await conversation.getByRole('alert').getByText(say('error.insufficient_quota')).waitFor()
      await conversation.getByRole('alert').getByText(NO_CREDIT[pass.language]).waitFor()
      await conversation.getByText(QUESTION, { exact: true }).waitFor()
      await isSound(visitor)

      await using other = await come(pass, tenant, `/agents/${agent.id}`)
      await other.page.getByRole('textbox', { name: say('agents.question') }).fill(QUESTION)
      await other.page.getByRole('button', { name: say('agents.send'), exact: true }).click()
      const log = other.page.getByRole('log')
      await log.getByRole('alert').getByText(say('error.insufficient_quota')).waitFor()
      await log.getByText(QUESTION, { exact: true }).waitFor()
      await isSound(other)

      expect(portal.mock.requests).toHaveLength(asked)
      expect((await tenant.rest('GET', '/v1/usage')).body.data).toEqual([])
      expect((await tenant.rest('GET', '/v1/wallet')).body).toMatchObject({ balance_usd: '0', held_usd: '0' })

      await portal.operator.rest('POST', `/v1/organizations/${tenant.organizationId}/top-ups`, { amount_usd: '5', reference: 'INV-1' })
      for (const place of [conversation, log]) {
        await place.getByRole('button', { name: say('common.tryAgain') }).click()
        await place.getByText(ANSWER).waitFor()
        expect(await place.getByRole('alert').count()).toBe(0)
      }
      await visitor.open(`/collections/${collection.id}`)
      await rowOf(visitor, TEXT.name)
        .getByRole('button', { name: say('documents.retryOf', { name: TEXT.name }) })
        .click()
      await isReady(visitor, say, TEXT.name)
      expect((await tenant.rest('GET', '/v1/usage')).body.data).toHaveLength(3)
    })

    it('a failed document shows the reason and can be retried; those that fail again are deleted together', async () => {
      const tenant = await portal.newTenant()
      const collection = await newCollection(tenant, 'mock-embed')
      const broken = { name: 'broken.pdf', bytes: ENGLISH.bytes.subarray(0, 400) }
      const secret = { name: 'secret.pdf', bytes: locked }
      await using visitor = await come(pass, tenant, `/collections/${collection.id}`)
      const { page } = visitor
      portal.mock.failWith(500)
      await visitor.drop([broken, secret, TEXT])
      for (const [{ name }, reason] of [
        [broken, 'CORRUPT'],
        [secret, 'PASSWORD_REQUIRED'],
        [TEXT, 'EMBEDDING_FAILED'],
      ] as const)
        await rowOf(visitor, name)
          .getByText(say(`documents.error.${reason}`))
          .waitFor()
      portal.mock.failWith(null)
      await isSound(visitor)
      for (const { name } of [TEXT, broken])
        await rowOf(visitor, name)
          .getByRole('button', { name: say('documents.retryOf', { name }) })
          .click()
      await isReady(visitor, say, TEXT.name)
      await eventually(async () => {
        const { body } = await tenant.rest('GET', `/v1/collections/${collection.id}/documents`)
        const { attempts, status } = body.data.find(({ file_name }: Json) => file_name === broken.name)
        return attempts === 2 && status === 'failed'
      }, PARSED_MS)
      await rowOf(visitor, broken.name).getByText(say('documents.error.CORRUPT')).waitFor()

      for (const { name } of [broken, secret]) await page.getByRole('checkbox', { name: say('documents.chooseOne', { name }) }).click()
      await page
        .getByRole('toolbar', { name: say('documents.bulk') })
        .getByRole('button', { name: say('common.delete'), exact: true })
        .click()
      await page.getByRole('alertdialog').getByRole('button').last().click()
      for (const { name } of [broken, secret]) await rowOf(visitor, name).waitFor({ state: 'hidden' })
      await isReady(visitor, say, TEXT.name)
      expect((await tenant.rest('GET', `/v1/collections/${collection.id}/documents`)).body.data).toHaveLength(1)
    })

    it('files that the service would refuse are named before anything of them is sent', async () => {
      const tenant = await portal.newTenant({ plan: 'tiny' })
      const collection = await newCollection(tenant, 'mock-embed')
      await using visitor = await come(pass, tenant, `/collections/${collection.id}`)
      const sent: string[] = []
      visitor.page.on('request', (request) => {
        const body = request.postData() ?? ''
        if (body.includes('mutation CreateUpload')) sent.push(JSON.parse(body).variables.name)
      })
      const files = [
        { name: 'letters.txt', bytes: Buffer.alloc(2_001, 'a'), reason: 'tooLarge' },
        { name: 'more.txt', bytes: Buffer.alloc(1_500, 'a'), reason: 'noRoom' },
        { name: 'program.bin', bytes: Buffer.alloc(100), reason: 'unsupported' },
        { name: 'empty.txt', bytes: Buffer.alloc(0), reason: 'empty' },
        { name: 'plan.png', bytes: png(1, 1), reason: 'needsOcr' },
        { name: 'bell.wav', bytes: wav(0), reason: 'needsSpeech' },
      ]
      await visitor.drop([...files, TEXT])
      const uploads = visitor.page.getByRole('region', { name: say('documents.uploads') })
      for (const { name, reason } of files) {
        const item = uploads.locator('li', { hasText: name })
        await item.waitFor()
        // The page says so until it has read the beginning of the file.
        await item.getByText(say('documents.upload.checking'), { exact: true }).waitFor({ state: 'hidden' })
        expect(plain(await item.textContent())).toMatch(pattern(say, `documents.refused.${reason}`))
      }
      await isReady(visitor, say, TEXT.name)
      expect(sent).toEqual([TEXT.name])
      await isSound(visitor)
    })
  })
}

function lockedPdf(): Promise<Buffer> {
  const pdf = new PDFDocument({ userPassword: 'open sesame' })
  const pieces: Buffer[] = []
  pdf.on('data', (piece) => pieces.push(piece))
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  pdf.on('end', () => resolve(Buffer.concat(pieces)))
  pdf.text('The lighthouse is 40 metres high.').end()
  return promise
}
