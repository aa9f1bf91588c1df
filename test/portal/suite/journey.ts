import { expect, it } from 'vitest'
import { type Caller, type Json, nano } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { ARABIC, ENGLISH, type Known } from '../support/harbour.ts'
import { isSound, type SharedPortal } from '../support/shared-portal.ts'
import type { Visit, Visitor } from '../support/visitor.ts'
import { numberOf, plain, wordsOf } from '../support/words.ts'

const TABLET = 768
const FILES = [ENGLISH, ARABIC]
const PASSES = [
  { language: 'en', theme: 'light', width: 1440 },
  { language: 'ar', theme: 'dark', width: 360 },
] as const satisfies readonly Visit[]

/** Somebody on their way through the portal. */
interface Walk {
  readonly visitor: Visitor
  readonly say: ReturnType<typeof wordsOf>
  readonly number: ReturnType<typeof numberOf>
  /** The organization, asked directly. */
  readonly owner: Caller
  /** Where pages must fit, too. The last is the width of the visitor's window. */
  readonly widths: readonly number[]
}

/** The amount in a text that shows one. */
const amountIn = (text: string | null) => nano(/\d[\d.,]*/.exec(plain(text))![0].replaceAll(',', ''))
const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

export function journey(portal: SharedPortal): void {
  it.each(PASSES)(
    'leads from the key to documents, answers, their citations, their price and the usage ($language, $theme, $width px)',
    async (pass) => {
      const owner = await portal.newTenant({ name: 'Harbour Museum متحف الميناء' })
      await using visitor = await portal.come(pass)
      const widths = pass.width < TABLET ? [TABLET, pass.width] : []
      const walk: Walk = { visitor, owner, widths, say: wordsOf(pass.language), number: numberOf(pass.language) }
      await signIn(walk)
      await createCollection(walk)
      await dropFiles(walk)
      for (const file of FILES) await search(walk, file)
      await createAgent(walk)
      const before = await balanceOf(walk)
      for (const file of FILES) await ask(walk, file)
      await openCitation(walk)
      expect(await sumOfReceipts(walk)).toBe(before - (await balanceOf(walk)))
      await seeUsage(walk)
      expect(visitor.external).toEqual([])
      // The console names the answer 401 to whoever is not signed in yet, and 503 of a busy process, which is asked again.
      expect(visitor.errors.filter((error) => !/status of (401|503)/.test(error))).toEqual([])
    },
    180_000,
  )

  async function signIn({ visitor: { page }, visitor, say, owner }: Walk): Promise<void> {
    await visitor.open('/')
    await page.getByLabel(say('signIn.key'), { exact: true }).fill(owner.key)
    await page.getByRole('button', { name: say('signIn.action'), exact: true }).click()
    await page.waitForURL(/\/home$/)
    await visitor.settle()
  }

  async function createCollection({ visitor: { page }, visitor, say }: Walk): Promise<void> {
    await visitor.go('collections')
    await page
      .getByRole('button', { name: say('collections.create') })
      .first()
      .click()
    const form = page.getByRole('dialog', { name: say('collections.create') })
    await form.getByLabel(say('collections.name'), { exact: true }).fill('Archive الأرشيف')
    await form.getByRole('radio', { name: 'e5-small-ar-en' }).click()
    await form.getByRole('button', { name: say('collections.createAction') }).click()
    await page.waitForURL(/\/collections\/col_/)
    await visitor.settle()
  }

  /** Both files are sent, read and found, and the page shows it by itself. */
  async function dropFiles({ visitor: { page }, visitor, say }: Walk): Promise<void> {
    await page.evaluate(`(() => {
      window.moved = new Set()
      const look = () => { for (const each of document.querySelectorAll('[role=progressbar]')) window.moved.add(each.getAttribute('aria-label')) }
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
    })()`)
    await visitor.drop(FILES)
    for (const { name } of FILES)
      await page.locator('main tr', { hasText: name }).getByText(say('documents.status.READY'), { exact: true }).waitFor()
    const moved = await page.evaluate<readonly string[]>('[...window.moved]')
    for (const { name } of FILES) expect(moved).toContain(say('documents.uploadOf', { name }))
    expect(await visitor.findOverflow()).toEqual([])
  }

  /** The passage is the first by meaning and by words, with its page, and the page says why. A model answers from it. */
  async function search({ visitor: { page }, visitor, say, number, widths }: Walk, { name, question, words }: Known): Promise<void> {
    await page.getByRole('tab', { name: say('collections.tab.search') }).click()
    await page.getByRole('searchbox', { name: say('searching.query') }).fill(question)
    const before = visitor.searches
    await page.getByRole('button', { name: say('common.search'), exact: true }).click()
    const first = page.getByRole('listitem').locator('visible=true', { hasText: words }).first()
    await page.locator('#hit-1', { hasText: words }).waitFor()
    // Each costs: one is asked for each time that the reader asks.
    expect(visitor.searches - before).toBe(1)
    await page.locator('search button[type=submit]').click()
    await eventually(() => visitor.searches - before === 2)
    await visitor.settle()
    const shown = plain(await page.locator('#hit-1').textContent())
    for (const expected of [name, words, say('document.page', { page: 2 })]) expect(shown).toContain(expected)
    for (const rank of ['searching.vectorRank', 'searching.lexicalRank']) expect(shown).toContain(say(rank, { rank: 1 }))
    await first.getByText(say('searching.relevance.STRONG'), { exact: true }).hover()
    const [, meaning] = say('searching.scoreHelp').split('{share}')
    await page.getByRole('tooltip').getByText(meaning!.trim()).waitFor()
    await first.getByRole('button', { name: say('searching.why') }).click()
    for (const reason of ['closeness', 'words']) await first.getByText(say(`searching.why.${reason}`), { exact: true }).waitFor()
    await page.getByRole('combobox', { name: say('searching.askModel'), exact: true }).selectOption('vendor-chat')
    await page.getByRole('button', { name: say('searching.askAction'), exact: true }).click()
    const mark = page.getByRole('link', { name: say('searching.citation', { number: number(1), name }) })
    await mark.waitFor()
    await page
      .locator('main p', { hasText: say('searching.cost') })
      .first()
      .waitFor()
    await isSound(visitor, widths)
  }

  async function createAgent({ visitor: { page }, visitor, say }: Walk): Promise<void> {
    const choose = async (field: string, option: RegExp) => {
      await page.getByLabel(say(field), { exact: true }).click()
      await page.getByRole('option', { name: option }).click()
    }
    await visitor.go('agents')
    await page
      .getByRole('link', { name: say('agents.create') })
      .first()
      .click()
    await page.waitForURL(/\/agents\/new$/)
    await page.getByLabel(say('agents.name'), { exact: true }).fill('Guide')
    await choose('agents.model', /vendor-chat/)
    await choose('agents.collections', /Archive/)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: say('agents.create') }).click()
    await page.waitForURL(/\/agents\/(?!new)/)
    await visitor.settle()
  }

  /** The answer grows while the run can be stopped; the steps show; at its end it has the mark of its source. */
  async function ask({ visitor: { page }, say }: Walk, { name, question, words }: Known): Promise<void> {
    await page.getByRole('textbox', { name: say('agents.question') }).fill(question)
    await page.evaluate(`(() => {
      window.growing = { steps: '', parts: new Set() }
      const log = document.querySelector('[role=log]')
      const look = () => {
        const stop = [...log.querySelectorAll('button')].some((each) => each.textContent === ${JSON.stringify(say('agents.stop'))})
        if (!stop) return
        window.growing.parts.add(log.lastElementChild.previousElementSibling.textContent)
        window.growing.steps = log.querySelector('ol')?.textContent || window.growing.steps
      }
      new MutationObserver(look).observe(log, { childList: true, subtree: true, characterData: true })
    })()`)
    await page.getByRole('button', { name: say('agents.send'), exact: true }).click()
    const mark = page.getByRole('button', { name: new RegExp(escaped(name)) }).first()
    await mark.waitFor()
    const { steps, parts } = await page.evaluate<{ steps: string; parts: readonly string[] }>(
      '({ steps: window.growing.steps, parts: [...window.growing.parts] })',
    )
    expect(steps).toContain(question)
    expect(parts.some((part) => part.includes(words.slice(0, 8)) && !part.includes(words))).toBe(true)
  }

  /** The mark of the last answer leads to its passage, on its page of the document; and back again. */
  async function openCitation({ visitor: { page }, visitor, say, widths }: Walk): Promise<void> {
    const { name, words } = ARABIC
    await page
      .getByRole('button', { name: new RegExp(escaped(name)) })
      .first()
      .click()
    const passage = page.getByRole('dialog', { name: new RegExp(escaped(name)) })
    await passage.getByText(words).waitFor()
    await isSound(visitor, widths)
    await passage.getByRole('link', { name: say('agents.openChunk') }).click()
    await page.waitForURL(/\/documents\/doc_\w+\?passage=/)
    await page.locator('mark', { hasText: words }).waitFor()
    const place = page.getByRole('navigation', { name: say('common.pages') }).getByRole('status')
    expect(plain(await place.textContent())).toBe(say('document.pageOf', { page: 2, last: 2 }))
    await isSound(visitor, widths)
    await page.goBack()
    await visitor.settle()
    for (const file of FILES) await page.getByRole('log').getByText(file.question, { exact: true }).waitFor()
  }

  /** What the receipts of all runs come to. */
  async function sumOfReceipts({ visitor: { page }, visitor, say }: Walk): Promise<bigint> {
    await page.getByRole('tab', { name: say('agents.tab.runs') }).click()
    const rows = page.locator('main tbody tr')
    await rows.first().waitFor()
    expect(await rows.count()).toBe(FILES.length)
    let sum = 0n
    for (const row of [rows.first(), rows.last()]) {
      await row.getByRole('button').click()
      const run = page.getByRole('dialog', { name: say('agents.run') })
      const total = run.locator('p', { hasText: say('agents.total') }).locator('strong')
      await total.waitFor()
      for (const charge of ['MODEL', 'SEARCH'])
        await run
          .getByText(say(`agents.charge.${charge}`), { exact: true })
          .first()
          .waitFor()
      sum += amountIn(await total.textContent())
      expect(await visitor.findOverflow()).toEqual([])
      await run.getByRole('button', { name: say('common.close') }).click()
      await run.waitFor({ state: 'hidden' })
    }
    return sum
  }

  async function balanceOf({ owner }: Walk): Promise<bigint> {
    let wallet: Json
    await eventually(async () => {
      wallet = (await owner.rest('GET', '/v1/wallet')).body
      return nano(wallet.held_usd) === 0n
    })
    return nano(wallet.balance_usd)
  }

  /** The chart is there, and its table names each model with what the service says that it cost. */
  async function seeUsage({ visitor: { page }, visitor, say, owner, widths }: Walk): Promise<void> {
    const { body } = await owner.rest('GET', '/v1/usage?limit=100')
    await visitor.go('usage')
    await page.locator('svg.recharts-surface').first().waitFor()
    for (const model of ['vendor-chat', 'e5-small-ar-en']) await page.locator('main table').getByText(model).waitFor()
    const calls = page.locator('main dl > *', { hasText: say('usage.measure.calls') }).locator('dd')
    expect(plain(await calls.textContent())).toBe(String(body.data.length))
    await isSound(visitor, widths)
  }
}
