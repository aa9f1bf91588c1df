import { beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { isSound, type SharedPortal } from '../support/shared-portal.ts'
import type { Visit } from '../support/visitor.ts'
import { numberOf, plain, wordsOf } from '../support/words.ts'

/** What the vendor of the test always answers. */
const ANSWER = 'Hello from the mock مرحبا'
const SECRET = 'Bearer of the museum'
/** A model is asked, and then its answer is written into a text. */
const ASK_AND_WRITE = JSON.stringify({
  inputs: { type: 'object', required: ['question'], properties: { question: { type: 'string', title: 'Question سؤال' } } },
  nodes: [
    { id: 'ask', type: 'chat', model: 'mock-chat', messages: [{ role: 'user', content: '{{ inputs.question }}' }] },
    { id: 'write', type: 'template', template: 'They say: {{ nodes.ask.text }}' },
  ],
  output: { text: { $ref: 'nodes.write.text' } },
})
const PASSES = [
  { language: 'en', theme: 'light', width: 1440 },
  { language: 'ar', theme: 'dark', width: 360 },
] as const satisfies readonly Visit[]

/** Agents and workflows. */
export function building(portal: SharedPortal): void {
  let owner: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    owner = await portal.newTenant()
  })

  describe.each(PASSES)('in $language', (pass) => {
    const { language } = pass
    const say = wordsOf(language)
    const number = numberOf(language)

    it('an agent gets a schema and an MCP server, is changed, compared with its earlier version, and called by programs', async () => {
      await using visitor = await portal.come({ ...pass, key: owner.key, path: '/agents/new' })
      const { page } = visitor
      const field = (id: string) => page.getByLabel(say(id), { exact: true })
      const press = (id: string) => page.getByRole('button', { name: say(id), exact: true }).click()
      const open = (id: string) => page.locator('summary', { hasText: say(id) }).click()
      await field('agents.name').fill(`Clerk ${language}`)
      await field('agents.model').click()
      await page.getByRole('option', { name: /^mock-chat / }).click()
      await field('agents.instructions').fill('Answer briefly.')

      await open('agents.answerForm')
      await page.getByRole('switch', { name: new RegExp(`^${say('agents.hasSchema')}`) }).click()
      await field('agents.schema').fill('{\n  "type": "object"\n  "title": "Answer"\n}')
      await field('agents.name').click()
      await page.getByText(say('agents.schema.notJsonAt', { line: number(3) })).waitFor()
      await field('agents.schema').fill('{ "type": "texts" }')
      await page.getByText(plain(say('agents.schema.type', { path: '/type' })).slice(-20)).waitFor()
      await isSound(visitor)
      await field('agents.schema').fill('')
      await press('agents.schemaExample')
      await page.getByText(say('agents.schema.right'), { exact: true }).waitFor()

      await open('agents.servers')
      await press('agents.serverAdd')
      await field('agents.serverName').fill('crm')
      await field('agents.serverUrl').fill('harbour')
      await press('agents.create')
      await page.getByText(say('agents.problem.url'), { exact: true }).waitFor()
      await field('agents.serverUrl').fill(portal.tools.toUrl('good'))
      await field('agents.serverHeaders').fill(`authorization: ${SECRET}`)
      await isSound(visitor)
      await press('agents.create')
      await page.waitForURL(/\/agents\/agt_/)
      await visitor.settle()
      const [id] = /agt_\w+/.exec(page.url())!
      const { body: made } = await owner.rest('GET', `/v1/agents/${id}`)
      expect(made).toMatchObject({ code: `clerk-${language}`, model: 'mock-chat', version: 1, response_schema: { type: 'object' } })
      expect(made.mcp_servers).toEqual([
        { name: 'crm', url: portal.tools.toUrl('good'), header_names: ['authorization'], allowed_tools: null },
      ])

      await page.getByRole('tab', { name: say('agents.tab.settings') }).click()
      await field('agents.instructions').fill('Answer in one sentence.')
      await press('agents.save')
      await page.getByRole('button', { name: say('agents.changesOf', { version: number(2) }) }).click()
      const changes = page.getByRole('dialog', { name: say('agents.diffTitle', { from: number(1), to: number(2) }) })
      const line = (kind: string, text: string) =>
        changes
          .locator('li', { hasText: say(`agents.diff.${kind}`) })
          .getByText(text)
          .waitFor()
      await line('removed', 'Answer briefly.')
      await line('added', 'Answer in one sentence.')
      await isSound(visitor)
      await changes.getByRole('button', { name: say('common.close') }).click()
      await changes.waitFor({ state: 'hidden' })
      expect(await page.evaluate<string>('document.documentElement.outerHTML')).not.toContain(SECRET)

      await page.getByRole('tab', { name: say('agents.tab.use') }).click()
      for (const [way, expected] of [
        ['curl', `${portal.service.rest}/v1/agents/${id}/runs`],
        ['node', `agent/clerk-${language}`],
        ['python', `agent/clerk-${language}`],
        ['graphql', 'runAgent'],
        ['mcp', `${portal.service.rest}/mcp`],
      ] as const) {
        await page.getByRole('tab', { name: say(`agents.use.${way}`), exact: true }).click()
        expect(await page.getByRole('region', { name: say(`agents.use.${way}`) }).textContent()).toContain(expected)
      }
      await isSound(visitor)
    })

    it('a workflow is written, drawn in the direction of the text, run with live progress, and cancelled', async () => {
      portal.mock.closeGate()
      await using visitor = await portal.come({ ...pass, key: owner.key, path: '/workflows' })
      const { page } = visitor
      await page
        .getByRole('button', { name: say('workflows.create') })
        .first()
        .click()
      const form = page.getByRole('dialog', { name: say('workflows.create') })
      await form.getByLabel(say('workflows.name'), { exact: true }).fill(`Keeper ${language}`)
      await form.getByRole('radio', { name: new RegExp(`^${say('workflows.template.ask')}`) }).click()
      await form.getByRole('button', { name: say('common.create') }).click()
      await form.getByText(say('workflows.missing.model')).waitFor()
      await form.getByLabel(say('workflows.model'), { exact: true }).selectOption('mock-chat')
      await isSound(visitor)
      await form.getByRole('button', { name: say('common.create') }).click()
      await page.waitForURL(/\/workflows\/wfl?_\w+\?tab=editor/)
      const [path] = /\/workflows\/\w+/.exec(page.url())!

      const editor = page.getByLabel(say('workflows.definition'), { exact: true })
      await editor.fill('{\n  "nodes": [\n}')
      await page.getByRole('button', { name: say('workflows.line', { line: number(3) }) }).waitFor()
      await editor.fill(ASK_AND_WRITE.replace('"template",', '"letter",'))
      await page.getByText('nodes[1].type').waitFor()
      await isSound(visitor)
      await editor.fill(ASK_AND_WRITE)
      await page.getByText(say('workflows.noMistakes')).waitFor()
      await page.getByRole('button', { name: say('workflows.saveVersion'), exact: true }).click()
      await page.getByText(say('workflows.saved'), { exact: true }).waitFor()

      await page.getByRole('tab', { name: say('workflows.tab.graph') }).click()
      await page.locator('.react-flow__node[data-id=write]').waitFor()
      const [ask, write] = await page.evaluate<readonly [number, number]>(
        `['ask', 'write'].map((id) => document.querySelector('.react-flow__node[data-id=' + id + ']').getBoundingClientRect().left)`,
      )
      expect(Math.sign(write - ask)).toBe(language === 'ar' ? -1 : 1)
      await isSound(visitor)

      await page.getByRole('tab', { name: say('workflows.tab.run'), exact: true }).click()
      const start = page.getByRole('button', { name: say('workflows.start'), exact: true })
      await start.click()
      await page.getByText(say('workflows.input.missing')).waitFor()
      await page.getByLabel('Question سؤال', { exact: true }).fill('Wait at the gate')
      await start.click()
      await page.waitForURL(/\/runs\/\w+/)
      const first = page.url()
      const stateOf = (node: string, state: string) =>
        page
          .locator('main tbody tr', { hasText: new RegExp(`^${node}`) })
          .getByText(say(`workflows.state.${state}`), { exact: true })
          .waitFor()
      const isRun = (status: string) =>
        page
          .getByRole('status')
          .getByText(say(`workflows.status.${status}`), { exact: true })
          .waitFor()
      await stateOf('ask', 'RUNNING')
      await stateOf('write', 'PENDING')
      await isRun('RUNNING')
      await isSound(visitor)
      await page.evaluate('window.isSamePage = true')
      portal.mock.openGate()
      await isRun('COMPLETED')
      for (const node of ['ask', 'write']) await stateOf(node, 'DONE')
      await page
        .getByRole('region', { name: say('workflows.output') })
        .getByText(`They say: ${ANSWER}`)
        .waitFor()
      expect(await page.evaluate('window.isSamePage')).toBe(true)
      await isSound(visitor)

      portal.mock.closeGate()
      await page.getByRole('link', { name: say('workflows.runAgain') }).click()
      await page.getByLabel('Question سؤال', { exact: true }).waitFor()
      await start.click()
      await page.waitForURL((url) => /\/runs\/\w+/.test(url.pathname) && url.href !== first)
      await stateOf('ask', 'RUNNING')
      await page.getByRole('button', { name: say('workflows.cancel'), exact: true }).click()
      await page
        .getByRole('alertdialog')
        .getByRole('button', { name: say('workflows.cancel') })
        .click()
      await isRun('CANCELLED')
      portal.mock.openGate()
      await eventually(async () => (await owner.rest('GET', '/v1/wallet')).body.held_usd === '0')

      await visitor.open(`${path}?tab=runs`)
      const runs = page.locator('main tbody')
      for (const status of ['CANCELLED', 'COMPLETED']) await runs.getByText(say(`workflows.status.${status}`), { exact: true }).waitFor()
      await isSound(visitor)
      await visitor.open(`${path}?tab=versions&version=2`)
      const version = page.getByRole('dialog', { name: say('workflows.versionNumber', { version: number(2) }) })
      await version.getByText('They say: {{ nodes.ask.text }}').waitFor()
      await isSound(visitor)
    })

    it('digits and the calendar follow the choice of the reader, without a reload', async () => {
      await using visitor = await portal.come({ ...pass, key: owner.key, path: '/organization' })
      const { page } = visitor
      const date = page.locator('main time').first()
      await date.waitFor()
      const shown = async () => (await date.textContent()) ?? ''
      const choose = async (choice: string) => {
        const item = page.getByRole('menuitemradio', { name: say(`preferences.${choice}`) })
        if (!(await item.isVisible()))
          await page
            .getByRole('button', { name: say('preferences.title') })
            .first()
            .click()
        await item.click()
      }
      await choose('digits.arab')
      await eventually(async () => /[٠-٩]/.test(await shown()) && !/[0-9]/.test(await shown()))
      await choose('digits.latn')
      await eventually(async () => /[0-9]/.test(await shown()) && !/[٠-٩]/.test(await shown()))
      await choose('calendar.islamic-umalqura')
      await eventually(async () => /14\d\d/.test(await shown()))
      await page.reload()
      await visitor.settle()
      expect(await shown()).toMatch(/14\d\d/)
      await isSound(visitor)
    })
  })
}
