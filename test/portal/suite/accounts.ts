import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { LANGUAGES } from '../support/pages.ts'
import { isSound, type SharedPortal } from '../support/shared-portal.ts'
import type { Visitor } from '../support/visitor.ts'
import { plain, wordsOf } from '../support/words.ts'

/** The service ends a key within 5 s. The rest is for a busy machine. */
const ENDED_MS = 20_000

/** Keys, usage, wallet and webhooks. */
export function accounts(portal: SharedPortal): void {
  let owner: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    owner = await portal.newTenant()
  })

  const statusOf = async (key: string) =>
    (await fetch(`${portal.service.rest}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status
  const isRefused = (key: string) => eventually(async () => (await statusOf(key)) === 401, ENDED_MS)

  // They wait for keys to end, and for the page to ask how a delivery goes on.
  describe.concurrent.each(LANGUAGES)('in %s', (language) => {
    const say = wordsOf(language)
    /** The secret that shows once. */
    const takeSecret = async ({ page }: Visitor, title: string): Promise<string> => {
      const dialog = page.getByRole('dialog', { name: say(title) })
      const secret = (await dialog.locator('code').textContent())!
      await dialog.getByRole('button', { name: say('common.secretStored') }).click()
      await dialog.waitFor({ state: 'hidden' })
      expect(await page.evaluate<string>('document.documentElement.outerHTML')).not.toContain(secret)
      return secret
    }

    it('a key is created, limited, rotated and revoked, and its secret is shown once', async () => {
      await using visitor = await portal.come({ language, key: owner.key, path: '/keys' })
      const { page } = visitor
      const shownName = `${language} <b>Website</b> gnp موقع`
      await page
        .getByRole('button', { name: say('keys.create') })
        .first()
        .click()
      const form = page.getByRole('dialog', { name: say('keys.create') })
      const field = (id: string) => page.getByLabel(say(id), { exact: true })
      const submit = form.getByRole('button', { name: say('keys.create') })
      await submit.click()
      await form.getByText(say('keys.problem.nameMissing')).waitFor()
      await field('keys.name').fill('م'.repeat(500))
      await field('keys.spendLimit').fill('-1')
      await field('keys.requestsPerMinute').fill('1.5')
      for (const problem of ['nameLong', 'notAmount', 'notWhole'])
        await form
          .getByText(say(`keys.problem.${problem}`))
          .first()
          .waitFor()
      await isSound(visitor)
      await field('keys.name').fill(shownName)
      await field('keys.spendLimit').fill('١٢٫٥')
      await field('keys.requestsPerMinute').fill('')
      await submit.click()
      const first = await takeSecret(visitor, 'keys.secretTitle')
      expect(await statusOf(first)).toBe(200)

      await page.getByRole('link', { name: shownName, exact: true }).click()
      await page.waitForURL(/key=key_/)
      const [id] = /key_\w+/.exec(await page.evaluate<string>('location.href'))!
      const sheet = page.getByRole('dialog', { name: shownName })
      await sheet.getByRole('button', { name: say('common.edit') }).click()
      await field('keys.requestsPerMinute').fill('٦٠')
      const edit = page.getByRole('dialog', { name: say('keys.edit') })
      await edit.getByRole('button', { name: say('common.save') }).click()
      await edit.waitFor({ state: 'hidden' })
      const { data } = await owner.graphql('query ($id: ID!) { apiKey(id: $id) { requestsPerMinute spendLimit { amount period } } }', {
        id,
      })
      expect(data.apiKey).toEqual({ requestsPerMinute: 60, spendLimit: { amount: '12.5', period: 'MONTH' } })
      await isSound(visitor)

      const confirm = async (action: string) => {
        await sheet.getByRole('button', { name: say(action) }).click()
        const question = page.getByRole('alertdialog')
        expect(await question.textContent()).not.toContain('\u202e')
        await question.getByRole('button', { name: say(action) }).click()
      }
      await confirm('keys.rotate')
      const second = await takeSecret(visitor, 'keys.secretTitle')
      expect(await statusOf(second)).toBe(200)
      await confirm('keys.revoke')
      await sheet.getByText(say('keys.state.revoked'), { exact: true }).waitFor()
      for (const key of [first, second]) await isRefused(key)
    })

    it('a call shows in the chart, in the records, in its receipt and as CSV, with the amount of the API', async () => {
      const tenant = await portal.newTenant({ name: 'Usage' })
      const call = (model: string) => tenant.openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello' }] })
      await call('extractive')
      await call('mock-chat')
      const { data } = await tenant.graphql('{ usage(first: 10) { edges { node { id amount requestId model { id } } } } }')
      const records = data.usage.edges.map(({ node }: { node: unknown }) => node)
      expect(records).toHaveLength(2)
      const [record] = records

      await using visitor = await portal.come({ language, key: tenant.key, path: '/usage' })
      const { page } = visitor
      await page.locator('svg.recharts-surface').first().waitFor()
      await page.locator('main table').getByText('mock-chat').waitFor()
      await isSound(visitor)

      await visitor.open(`/usage?tab=records&model=${record.model.id}`)
      const rows = page.locator('main tbody tr')
      expect(await rows.count()).toBe(1)
      await isSound(visitor)
      await rows.locator('a').click()
      const receipt = page.getByRole('dialog', { name: say('usage.receipt') })
      await receipt.getByText(record.requestId).waitFor()
      expect(plain(await receipt.locator('p', { hasText: say('usage.charged') }).textContent())).toContain(record.amount)
      await isSound(visitor)

      await visitor.open(`/usage?tab=records&request=${record.requestId}`)
      expect(await rows.count()).toBe(1)
      await visitor.open('/usage?tab=records')
      expect(await rows.count()).toBe(2)
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: say('usage.export') }).click()
      const lines = readFileSync(await (await download).path(), 'utf8').split('\r\n')
      expect(lines).toHaveLength(3)
      for (const { id, amount } of records) expect(lines.find((line) => line.startsWith(id))).toContain(`,${amount},`)
    })

    it('the wallet warns of a low balance, and shows a top-up without a reload', async () => {
      const tenant = await portal.newTenant({ name: 'Wallet' })
      await using visitor = await portal.come({ language, key: tenant.key, path: '/wallet' })
      const { page } = visitor
      const balance = async () => plain(await page.locator('main dl').first().textContent())
      expect(await balance()).toContain('10.00')
      await page.getByRole('button', { name: say('wallet.threshold') }).click()
      const dialog = page.getByRole('dialog')
      const amount = page.getByLabel(say('wallet.amountUsd'), { exact: true })
      await amount.fill('0')
      await dialog.getByRole('button', { name: say('common.save') }).click()
      await dialog.getByText(say('wallet.problem.amount')).waitFor()
      await amount.fill('٢٠')
      await dialog.getByRole('button', { name: say('common.save') }).click()
      const warning = page.getByText(say('wallet.low'), { exact: true })
      await warning.waitFor()
      await dialog.waitFor({ state: 'hidden' })
      await isSound(visitor)
      await portal.operator.rest('POST', `/v1/organizations/${tenant.organizationId}/top-ups`, { amount_usd: '25', reference: 'INV-7' })
      await warning.waitFor({ state: 'hidden' })
      await page.locator('main tbody').getByText('INV-7').waitFor()
      expect(await balance()).toContain('35.00')
    })

    it('the operator tops up a wallet in the portal', async () => {
      await using visitor = await portal.come({ language, key: portal.operator.key, path: '/wallet' })
      const { page } = visitor
      await page.getByRole('button', { name: say('wallet.topUp') }).click()
      const dialog = page.getByRole('dialog')
      const submit = dialog.getByRole('button', { name: say('wallet.topUp') })
      await submit.click()
      for (const problem of ['amount', 'reference']) await dialog.getByText(say(`wallet.problem.${problem}`)).waitFor()
      await isSound(visitor)
      await page.getByLabel(say('wallet.amountUsd'), { exact: true }).fill('٥٫٢٥')
      await page.getByLabel(say('wallet.reference'), { exact: true }).fill(`PAY-${language}`)
      await submit.click()
      await page.locator('main tbody tr', { hasText: `PAY-${language}` }).waitFor()
      const { body } = await portal.operator.rest('GET', '/v1/wallet/entries')
      expect(body.data).toContainEqual(expect.objectContaining({ amount_usd: '5.25', reference: `PAY-${language}` }))
    })

    it('a webhook is added, pinged, redelivered, rotated and deleted; its deliveries show request and response', async () => {
      const place = portal.receiver.at(`/${language}`)
      place.answering = () => 200
      const { key } = await portal.newTenant()
      await using visitor = await portal.come({ language, key, path: '/webhooks' })
      const { page } = visitor
      await page
        .getByRole('button', { name: say('webhooks.create') })
        .first()
        .click()
      const form = page.getByRole('dialog', { name: say('webhooks.create') })
      const address = page.getByLabel(say('webhooks.url'), { exact: true })
      const submit = form.getByRole('button', { name: say('webhooks.create') })
      await address.fill('harbour')
      await submit.click()
      await form.getByText(say('webhooks.problem.url')).waitFor()
      await isSound(visitor)
      await address.fill(place.url)
      await submit.click()
      place.secret = await takeSecret(visitor, 'webhooks.secretTitle')
      await page.getByRole('link', { name: place.url }).click()
      await page.waitForURL(/\/webhooks\/whe?_?/)
      await visitor.settle()

      const ping = page.getByRole('button', { name: say('webhooks.ping') })
      const rows = page.locator('main tbody tr')
      const sheet = page.getByRole('dialog', { name: say('webhooks.delivery') })
      await ping.click()
      await eventually(() => place.accepted.length === 1)
      const [message] = place.accepted
      await rows.getByText(say('webhooks.status.DELIVERED'), { exact: true }).waitFor()
      await isSound(visitor)
      await rows.locator('button').click()
      await sheet.getByText('answered 200').waitFor()
      expect(JSON.parse((await sheet.getByRole('region', { name: say('webhooks.payload') }).textContent())!)).toEqual(message!.data)
      await isSound(visitor)
      await sheet.getByRole('button', { name: say('webhooks.redeliver') }).click()
      await eventually(() => place.accepted.length === 2)
      expect(place.accepted[1]!.id).toBe(message!.id)
      await sheet.getByRole('button', { name: say('common.close') }).click()

      // It fails once; the service tries again, and the page follows. In the same minute it is the same event.
      place.answering = () => (place.received.length < 3 ? 500 : 200)
      await ping.click()
      await eventually(() => place.accepted.length === 3)
      const newest = page.locator('main tbody tr:first-child')
      await newest.getByText(say('webhooks.status.DELIVERED'), { exact: true }).waitFor()
      await newest.locator('button').click()
      for (const answer of ['answered 500', 'answered 200']) await sheet.getByText(answer).first().waitFor()
      await isSound(visitor)
      await sheet.getByRole('button', { name: say('common.close') }).click()

      await page.getByRole('button', { name: say('webhooks.rotate') }).click()
      await page
        .getByRole('alertdialog')
        .getByRole('button', { name: say('webhooks.rotate') })
        .click()
      place.secret = await takeSecret(visitor, 'webhooks.secretTitle')
      await ping.click()
      await eventually(() => place.accepted.length === 4)
      expect(place.faults).toEqual([])
      await page.getByRole('button', { name: say('common.delete') }).click()
      await page
        .getByRole('alertdialog')
        .getByRole('button', { name: say('common.delete') })
        .click()
      await page.waitForURL(/\/webhooks$/)
      await page.getByRole('link', { name: place.url }).waitFor({ state: 'hidden' })
    })
  })
}
