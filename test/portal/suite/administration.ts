import { describe, expect, it } from 'vitest'
import type { Json } from '../../support/client.ts'
import { wav } from '../../support/data/audio.ts'
import { png } from '../../support/data/images.ts'
import { eventually } from '../../support/eventually.ts'
import { isSound, type SharedPortal } from '../support/shared-portal.ts'
import { HEARD, RANKED, SEEN } from '../support/vendor.ts'
import type { Visit, Visitor } from '../support/visitor.ts'
import { plain, wordsOf } from '../support/words.ts'

/** The service ends keys and sessions within 5 s. The rest is for a busy machine. */
const ENDED_MS = 20_000
const MIB = 1024 * 1024
const PASSES = [
  { language: 'en', theme: 'light', width: 1440 },
  { language: 'ar', theme: 'dark', width: 360 },
] as const satisfies readonly Visit[]

/** Operators, people and models. */
export function administration(portal: SharedPortal): void {
  const statusOf = async (key: string) =>
    (await fetch(`${portal.service.rest}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status
  /** What a dialog shows once. */
  const takeSecret = async ({ page }: Visitor, title: string, stored: string): Promise<string> => {
    const dialog = page.getByRole('dialog', { name: title })
    const secret = (await dialog.locator('code').textContent())!
    await dialog.getByRole('button', { name: stored }).click()
    await dialog.waitFor({ state: 'hidden' })
    return secret
  }

  describe.each(PASSES)('in $language', (pass) => {
    const { language } = pass
    const say = wordsOf(language)

    it('the operator creates an organization, tops it up, suspends, resumes and deletes it', async () => {
      await using visitor = await portal.come({ ...pass, key: portal.operator.key, path: '/operator' })
      await using theirs = await portal.come(pass)
      const { page } = visitor
      const name = `Museum متحف ${language}`
      await page.getByRole('button', { name: say('operator.create') }).click()
      const form = page.getByRole('dialog', { name: say('operator.create') })
      await form.getByLabel(say('operator.name'), { exact: true }).fill(name)
      await isSound(visitor)
      await form.getByRole('button', { name: say('operator.create') }).click()
      const key = await takeSecret(visitor, say('operator.secretTitle'), say('common.secretStored'))
      expect(await statusOf(key)).toBe(200)
      await page.getByRole('link', { name, exact: true }).click()
      await page.getByRole('button', { name: say('operator.credit') }).click()
      const credit = page.getByRole('dialog', { name: say('operator.credit') })
      await credit.getByLabel(say('wallet.amountUsd'), { exact: true }).fill('١٢٫٥')
      await credit.getByLabel(say('wallet.reference'), { exact: true }).fill(`INV-${language}`)
      await credit.getByRole('button', { name: say('common.save') }).click()
      await credit.waitFor({ state: 'hidden' })
      const wallet = page.getByRole('region', { name: say('operator.wallet') })
      await eventually(async () => plain(await wallet.textContent()).includes('12.50'))
      await isSound(visitor)

      const question = page.getByRole('alertdialog')
      const status = page.getByRole('heading', { level: 1 })
      await page.getByRole('button', { name: say('operator.suspend') }).click()
      await question.getByLabel(say('operator.reason'), { exact: true }).fill('Unpaid')
      await question.getByRole('button', { name: say('operator.suspend') }).click()
      await status.getByText(say('operator.status.SUSPENDED'), { exact: true }).waitFor()
      await eventually(async () => (await statusOf(key)) !== 200, ENDED_MS)
      await theirs.open('/sign-in')
      await theirs.page.getByLabel(say('signIn.key'), { exact: true }).fill(key)
      await theirs.page.getByRole('button', { name: say('signIn.action'), exact: true }).click()
      await theirs.page.getByText(say('error.organization_suspended')).waitFor()

      await page.getByRole('button', { name: say('operator.resume') }).click()
      await question.getByRole('button', { name: say('operator.resume') }).click()
      await status.getByText(say('operator.status.ACTIVE'), { exact: true }).waitFor()
      await eventually(async () => (await statusOf(key)) === 200, ENDED_MS)
      await theirs.signIn(key)

      await page.getByRole('button', { name: say('common.delete'), exact: true }).click()
      const typed = question.getByLabel(say('operator.typeName'), { exact: true })
      await typed.fill('Museum')
      await question.getByRole('button', { name: say('operator.delete') }).click()
      await question.getByText(say('operator.problem.typeName')).waitFor()
      await typed.fill(name)
      await question.getByRole('button', { name: say('operator.delete') }).click()
      await question.waitFor({ state: 'hidden' })
      await status.getByText(new RegExp(`${say('operator.status.DELETING')}|${say('operator.status.DELETED')}`)).waitFor()
      await eventually(async () => (await statusOf(key)) === 401, ENDED_MS)
    })

    it('the operator sets a limit, which the organization sees; its admin changes where data may be processed', async () => {
      const tenant = await portal.newTenant({ name: `Archive ${language}` })
      const path = `/operator/organizations/${tenant.organizationId}`
      await using operator = await portal.come({ ...pass, key: portal.operator.key, path })
      await operator.page.getByRole('button', { name: say('operator.changePlan') }).click()
      const form = operator.page.getByRole('dialog', { name: say('operator.changePlan') })
      const limit = form.getByLabel(say('operator.limit.requestsPerMinute'), { exact: true })
      await limit.fill('many')
      await form.getByRole('button', { name: say('common.save') }).click()
      await form.getByText(say('operator.problem.limit')).waitFor()
      await limit.fill('٤٣٢')
      await isSound(operator)
      await form.getByRole('button', { name: say('common.save') }).click()
      await form.waitFor({ state: 'hidden' })

      await using admin = await portal.come({ ...pass, key: tenant.key, path: '/organization' })
      const { page } = admin
      await eventually(async () => plain(await page.locator('main').textContent()).includes('432'))
      const policies = page.getByRole('radiogroup', { name: say('organization.residency') })
      await policies.getByRole('radio', { name: new RegExp(`^${say('organization.policy.LOCAL_ONLY')}`) }).click()
      await page
        .getByRole('list', { name: say('organization.forbiddenModels') })
        .getByText('mock-chat', { exact: true })
        .waitFor()
      await page.getByRole('button', { name: say('organization.changePolicy') }).click()
      const question = page.getByRole('alertdialog')
      await isSound(admin)
      await question.getByRole('button', { name: say('organization.changePolicy') }).click()
      await question.waitFor({ state: 'hidden' })
      const asked = '{ viewer { organization { residencyPolicy limits { requestsPerMinute } } } }'
      const { data } = await tenant.graphql(asked, {})
      expect(data).toEqual({ viewer: { organization: { residencyPolicy: 'LOCAL_ONLY', limits: { requestsPerMinute: 432 } } } })
    })

    it('an invitation is accepted at the provider; the role changes, the session ends, the member is removed', async () => {
      const tenant = await portal.newTenant()
      const login = `mona-${language}`
      await using admin = await portal.come({ ...pass, key: tenant.key, path: '/people' })
      await using member = await portal.come(pass)
      const keysEntry = member.page.getByRole('navigation').getByRole('link', { name: say('keys.title'), exact: true })
      const openMenu = async () => {
        const menu = member.page.getByRole('button', { name: say('shell.menu') })
        if (await menu.isVisible()) await menu.click()
      }
      await admin.page.getByRole('button', { name: say('people.invite') }).click()
      const invite = admin.page.getByRole('dialog', { name: say('people.invite') })
      await invite.getByLabel(say('people.email'), { exact: true }).fill(`${login}@example.org`)
      await invite.getByRole('radio', { name: new RegExp(`^${say('people.role.VIEWER')}`) }).click()
      await isSound(admin)
      await invite.getByRole('button', { name: say('people.inviteAction') }).click()
      const link = await takeSecret(admin, say('people.linkTitle'), say('common.secretStored'))

      await member.page.goto(link)
      await member.page.getByText(say('signIn.invited')).waitFor()
      await isSound(member)
      const provider = member.page.getByRole('link', { name: /Example/ })
      await provider.click()
      await member.page.locator('input[name=login]').fill(login)
      await member.page.locator('input[name=password]').fill('anything')
      await member.page.getByRole('button', { name: 'Sign-in' }).click()
      await member.page.getByRole('button', { name: 'Continue' }).click()
      await member.page.waitForURL(`${portal.service.rest}/home`)
      await member.settle()
      await openMenu()
      await member.page
        .getByRole('navigation')
        .getByRole('link', { name: say('collections.title'), exact: true })
        .waitFor()
      expect(await keysEntry.count()).toBe(0)

      const act = async (action: string) => {
        await admin.open('/people')
        await admin.page.getByRole('button', { name: say('people.actionsOf', { name: login }) }).click()
        await admin.page.getByRole('menuitem', { name: say(action) }).click()
      }
      await act('people.changeRole')
      const role = admin.page.getByRole('dialog')
      await role.getByRole('radio', { name: new RegExp(`^${say('people.role.ADMIN')}`) }).click()
      await role.getByRole('button', { name: say('people.changeRole') }).click()
      await admin.page.locator('main tbody tr', { hasText: login }).getByText(say('people.role.ADMIN'), { exact: true }).waitFor()
      // The member comes back to the page. Nothing is loaded anew.
      await eventually(async () => {
        await member.page.evaluate("window.dispatchEvent(new Event('focus'))")
        return (await keysEntry.count()) === 1
      }, ENDED_MS)
      await keysEntry.click()
      await member.page
        .getByRole('button', { name: say('keys.create') })
        .first()
        .waitFor()

      await act('people.changeRole')
      await role.getByRole('radio', { name: new RegExp(`^${say('people.role.BILLING')}`) }).click()
      await role.getByRole('button', { name: say('people.changeRole') }).click()
      await eventually(async () => {
        await member.page.evaluate("window.dispatchEvent(new Event('focus'))")
        return (await keysEntry.count()) === 0
      }, ENDED_MS)
      await openMenu()
      await member.page
        .getByRole('navigation')
        .getByRole('link', { name: say('wallet.title'), exact: true })
        .click()
      await member.page.waitForURL(/\/wallet$/)
      await member.settle()

      const ended = member.page.getByRole('dialog', { name: say('signIn.endedTitle') })
      const isOver = async () => (await ended.isVisible()) || /\/sign-in/.test(member.page.url())
      const moveUntilEnded = () =>
        eventually(async () => {
          await member.page.goto(`${portal.service.rest}/home`)
          await eventually(async () => (await isOver()) || member.page.getByRole('heading', { level: 1 }).isVisible(), ENDED_MS)
          return isOver()
        }, ENDED_MS)
      await admin.open('/organization?tab=sessions')
      await admin.page
        .locator('main tbody tr', { hasText: login })
        .getByRole('button', { name: say('sessions.end') })
        .click()
      await admin.page
        .getByRole('alertdialog')
        .getByRole('button', { name: say('sessions.end') })
        .click()
      await admin.page.locator('main tbody tr', { hasText: login }).waitFor({ state: 'hidden' })
      await moveUntilEnded()
      await provider.click()
      await member.page.waitForURL(/\/home$/)
      await member.settle()

      await act('people.remove')
      await admin.page
        .getByRole('alertdialog')
        .getByRole('button', { name: say('people.remove') })
        .click()
      await admin.page.locator('main tbody tr', { hasText: login }).waitFor({ state: 'hidden' })
      await moveUntilEnded()
      await provider.click()
      await member.page.getByText(say('signIn.error.not_a_member')).waitFor()
    }, 240_000)

    it('a member of two organizations chooses one after signing in, and switches to the other', async () => {
      const login = `two-${language}`
      const names = [`First الأولى ${language}`, `Second الثانية ${language}`] as const
      const both = [await portal.newTenant({ name: names[0] }), await portal.newTenant({ name: names[1] })]
      const ids = both.map(({ organizationId }) => organizationId)
      portal.issuer.members.set(login, { email: `${login}@example.org`, name: 'Mona', kis_organization: ids, groups: ['staff'] })
      await using visitor = await portal.come(pass)
      const { page } = visitor
      await visitor.open('/sign-in?next=/collections')
      await page.getByRole('link', { name: /Example/ }).click()
      await page.locator('input[name=login]').fill(login)
      await page.locator('input[name=password]').fill('anything')
      await page.getByRole('button', { name: 'Sign-in' }).click()
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: say('signIn.organization') }).waitFor()
      await page.getByRole('link', { name: names[0] }).waitFor()
      await isSound(visitor)
      await page.getByRole('link', { name: names[1] }).click()
      await page.waitForURL(/\/collections$/)
      await visitor.settle()
      const brand = page.getByRole('link', { name: names[1] })
      const openMenu = async () => {
        const menu = page.getByRole('button', { name: say('shell.menu') })
        if (await menu.isVisible()) await menu.click()
      }
      await brand.first().waitFor()
      const own = () => page.evaluate<Json>(`fetch('/v1/key').then((response) => response.json())`)
      const { organization_id, member } = await own()
      expect(organization_id).toBe(ids[1])
      expect(member.memberships.map((each: Json) => [each.organization_id, each.organization_name, each.role])).toEqual([
        [ids[1], names[1], 'editor'],
        [ids[0], names[0], 'editor'],
      ])
      await openMenu()
      await page.getByRole('button', { name: 'Mona' }).click()
      await page.getByText(say('shell.otherOrganizations')).waitFor()
      await isSound(visitor)
      await page.getByRole('menuitem', { name: names[0] }).click()
      await page.waitForURL(/\/home$/)
      await visitor.settle()
      await page.getByRole('link', { name: names[0] }).first().waitFor()
      expect((await own()).organization_id).toBe(ids[0])
    })

    it('each kind of model can be tried: a chat with an image, two texts, a reranking, a recording', async () => {
      const tenant = await portal.newTenant()
      await using visitor = await portal.come({ ...pass, key: tenant.key, path: '/models/vendor-chat/try' })
      const { page } = visitor
      const fill = (field: string, text: string) => page.getByLabel(say(field), { exact: true }).fill(text)
      const press = (action: string) => page.getByRole('button', { name: say(action), exact: true }).click()
      const isPaid = async () => {
        await page.getByText(say('models.try.cost')).waitFor()
        await isSound(visitor)
      }
      const pick = (name: string, buffer: Buffer) =>
        page.locator('main input[type=file]').setInputFiles([{ name, mimeType: 'image/png', buffer }])
      await pick('too-large.png', png(64, 64, { padding: 4 * MIB }))
      await page.getByText('too-large.png').waitFor()
      // More than a message of a socket may have.
      await pick('plan.png', png(64, 64, { padding: 3.9 * MIB }))
      await page.getByRole('button', { name: say('models.try.removeImage') }).waitFor()
      expect(await page.getByText('too-large.png').count()).toBe(0)
      await fill('models.try.message', 'What is this?')
      await press('models.try.send')
      await page.getByText(SEEN).waitFor()
      await isPaid()

      await visitor.open('/models/e5-small-ar-en/try')
      await fill('models.try.firstText', 'The lighthouse is high.')
      await fill('models.try.secondText', 'المنارة عالية.')
      await press('models.try.compare')
      await page.getByText(say('models.try.likeness'), { exact: true }).waitFor()
      await isPaid()

      await visitor.open('/models/vendor-rank/try')
      await fill('models.try.question', RANKED)
      await fill('models.try.texts', 'The quay is long.\nThe lamp is in the tower.')
      await press('models.try.rank')
      const order = page.getByRole('list', { name: say('models.try.order') }).getByRole('listitem')
      expect(await order.first().textContent()).toContain('The lamp is in the tower.')
      await isPaid()

      await visitor.open('/models/vendor-speech/try')
      await page
        .getByLabel(say('models.try.recording'), { exact: true })
        .setInputFiles([{ name: 'bell.wav', mimeType: 'audio/wav', buffer: wav(1) }])
      await press('models.try.transcribe')
      await page.getByText(HEARD).waitFor()
      await isPaid()
      expect((await tenant.rest('GET', '/v1/usage')).body.data).toHaveLength(4)
    })
  })
}
