import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const run = promisify(execFile)
/** Inside the project, so that `import 'openai'` finds the package. */
const SCRIPT = new URL('../../../node_modules/.cache/documentation-example.mjs', import.meta.url)

function block(page: string, language: string, holding: string): string {
  const text = readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8')
  const found = [...text.matchAll(/```(\w+)\n([\s\S]*?)```/g)].find(([, kind, code]) => kind === language && code!.includes(holding))
  if (!found) throw new Error(`${page} has no ${language} block with ${holding}`)
  return found[2]!
}

describe('the examples of the documentation', () => {
  let service: Service
  beforeAll(async () => {
    service = await startEmbedded()
  }, 60_000)
  afterAll(() => service?.close())

  const here = (text: string) =>
    text.replace(/kis_live_… +# the printed key/, service.key).replaceAll('http://127.0.0.1:4000', service.rest)

  it('works when pasted into a shell', async () => {
    const { stdout, stderr } = await run('bash', ['-euc', here(block('docs/guide/search.md', 'sh', 'COLLECTION='))], { timeout: 60_000 })
    expect(stderr).toBe('')
    expect(stdout).toContain('leave.md: ready')
    expect(stdout).toContain('travel.md: ready')
    expect(stdout).toContain('ثلاثون يوماً')
    expect(stdout).toMatch(/“Meals are reimbursed up to 60 dollars a day.” — \[\d\] travel\.md/)
    expect(stdout).toMatch(/chat_completion extractive 0\.\d+/)
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^99\.9\d+$/)
  }, 90_000)

  it('has an agent over two languages that cites what it answers', async () => {
    mkdirSync(new URL('.', SCRIPT), { recursive: true })
    writeFileSync(SCRIPT, here(block('docs/guide/agents.md', 'js', "'/agents'")))
    const { stdout } = await run(process.execPath, [SCRIPT.pathname], {
      env: { ...process.env, KIS_API_KEY: service.key },
      timeout: 60_000,
    })
    rmSync(SCRIPT)
    expect(stdout).toMatch(/ثلاثون يوماً .*\[#\d\]/)
    expect(stdout).toContain("file_name: 'إجازات.md'")
    expect(stdout).toMatch(/\[ 'search 0\.\d+', 'model 0\.\d+' \] 0\.\d+/)
    expect(stdout).toMatch(/60 dollars .*\[#\d\] travel\.md \[ 'travel\.md' \]/)
  }, 90_000)

  it('has a workflow over the same collection that chooses its way', async () => {
    mkdirSync(new URL('.', SCRIPT), { recursive: true })
    writeFileSync(SCRIPT, here(block('docs/guide/workflows.md', 'js', "'/workflows'")))
    const { stdout } = await run(process.execPath, [SCRIPT.pathname], {
      env: { ...process.env, KIS_API_KEY: service.key },
      timeout: 60_000,
    })
    rmSync(SCRIPT)
    expect(stdout).toMatch(/^completed \{/)
    expect(stdout).toMatch(/For the finance team: .*60 dollars/)
    expect(stdout).toContain('passages: [ 2, 2 ]')
    expect(stdout).toMatch(/'find done 0\.\d+',\s+'ask done 0\.\d+',\s+'about done 0',\s+'finance done 0'\s+\] 0\.\d+/)
  }, 90_000)

  it('works by Anthropic’s SDK', async () => {
    mkdirSync(new URL('.', SCRIPT), { recursive: true })
    writeFileSync(SCRIPT, here(block('docs/guide/messages.md', 'js', 'import Anthropic')))
    const { stdout } = await run(process.execPath, [SCRIPT.pathname], {
      env: { ...process.env, KIS_API_KEY: service.key },
      timeout: 60_000,
    })
    rmSync(SCRIPT)
    expect(stdout).toMatch(/Lunch is at noon\..* \d+ end_turn\n/)
  }, 90_000)

  it('works by the official SDK', async () => {
    mkdirSync(new URL('.', SCRIPT), { recursive: true })
    writeFileSync(SCRIPT, here(block('README.md', 'js', 'import OpenAI')))
    const { stdout } = await run(process.execPath, [SCRIPT.pathname], {
      env: { ...process.env, KIS_API_KEY: service.key },
      timeout: 60_000,
    })
    rmSync(SCRIPT)
    expect(stdout).toContain("'e5-small-ar-en'")
    expect(stdout).toContain('[ 384, 384 ]')
    expect(stdout).toContain('Receipts are due in May.')
    expect(stdout).toMatch(/Lunch is at noon\..* \d+\n/)
  }, 90_000)
})
