import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readOpenApi } from '../../rest-adapter/http/openapi.ts'
import { type Modules, modulesWith, type Python, pythonWith, run } from '../support/installed.ts'

const [typescript, python] = await Promise.all([
  modulesWith({ 'openapi-typescript': '7.13.0', typescript: '5.9.3' }),
  pythonWith('openapi-python-client==0.29.1', 'mypy==2.4.1'),
])
const TIMEOUT_MS = 180_000
const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
const STRICT = ['--strict', '--noEmit', '--skipLibCheck', 'false', '--allowImportingTsExtensions', '--module', 'nodenext', '--types', '']

/** Compiles if the generated types say what the contract says. */
const USE = `import type { components, operations } from './client.ts'
type Schemas = components['schemas']
type Answer<Id extends keyof operations> = operations[Id]['responses'] extends { 200: { content: { 'application/json': infer Body } } } ? Body : never
type IsEqual<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
export const lists: [
  IsEqual<Answer<'listCollections'>['data'], Schemas['Collection'][]>,
  IsEqual<Answer<'listUsage'>['data'], Schemas['UsageRecord'][]>,
  IsEqual<Answer<'searchCollection'>['data'], Schemas['SearchResult'][]>,
  IsEqual<Answer<'createMessage'>['content'], Schemas['MessageBlock'][]>,
] = [true, true, true, true]
export const request: Schemas['ChatCompletionRequest'] = { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] }
export const read = (answer: Answer<'createChatCompletion'>): string | null | undefined => answer.choices[0]?.message.content
export const refused = (answer: operations['createCollection']['responses']['4XX']['content']['application/json']) => answer.error.code === 'in_use'
`

function suite(name: string, tool: Modules | Python, body: (path: string) => void): void {
  if (!('reason' in tool)) describe(name, () => body('modules' in tool ? tool.modules : tool.python))
  else if (process.env.KIS_REQUIRE_CLIENTS === '1') it(`${name} can be set up`, () => expect.fail(tool.reason))
  else describe.skip(`${name}: skipped because ${tool.reason}`, () => it('runs', () => undefined))
}

/** The first output of a program that fails is why. */
const readFailure = (error: { stdout?: string; stderr?: string; message: string }) =>
  expect.fail(`${error.stdout}${error.stderr}`.trim() || error.message)

describe('Clients generated from the published OpenAPI document', () => {
  let folder = ''
  let description = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kis-clients-'))
    description = join(folder, 'openapi.json')
    await writeFile(description, JSON.stringify(readOpenApi().document))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  suite('openapi-typescript', typescript, (modules) => {
    it(
      'generates types that compile',
      async () => {
        const generator = join(modules, 'openapi-typescript', 'bin', 'cli.js')
        // What has a default need not be sent.
        const generate = [description, '-o', 'client.ts', '--default-non-nullable=false']
        await run(process.execPath, [generator, ...generate], { cwd: folder }).catch(readFailure)
        await writeFile(join(folder, 'use.ts'), USE)
        await run(process.execPath, [TSC, ...STRICT, 'use.ts'], { cwd: folder }).catch(readFailure)
      },
      TIMEOUT_MS,
    )
  })

  suite('openapi-python-client', python, (interpreter) => {
    it(
      'generates a client with every operation, which compiles',
      async () => {
        const config = join(folder, 'config.yaml')
        // It knows no media types but some: these are bytes.
        const overrides = { '*/*': 'application/octet-stream', 'application/offset+octet-stream': 'application/octet-stream' }
        await writeFile(config, JSON.stringify({ post_hooks: [], content_type_overrides: overrides }))
        const target = join(folder, 'kis_client')
        const generate = ['--path', description, '--output-path', target, '--meta', 'none', '--config', config, '--fail-on-warning']
        await run(interpreter, ['-m', 'openapi_python_client', 'generate', ...generate], { cwd: folder }).catch(readFailure)
        const check = ['-m', 'mypy', '--no-error-summary', '--cache-dir', join(folder, 'cache'), target]
        await run(interpreter, check, { cwd: folder }).catch(readFailure)
      },
      TIMEOUT_MS,
    )
  })
})
