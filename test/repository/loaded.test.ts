import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const ROOT = new URL('../../', import.meta.url)
/** What each process of a service loads, with what these files load. */
const FILES = ['main', 'start'].map((name) => `cli/${name}.ts`)
const ROLES = ['gateway', 'rest-adapter', 'subgraphs/billing', 'subgraphs/inference', 'subgraphs/knowledge'].map(
  (name) => `${name}/main.ts`,
)

it('starts without the fetch and WebSockets of Node, which would take memory and time in each process', async () => {
  const files = [...FILES, ...ROLES, 'subgraphs/common/server/serve-subgraph.ts'].map((file) => new URL(file, ROOT).href)
  const code = `import { resolveOwnFilesByName } from ${JSON.stringify(new URL('cli/own-files.js', ROOT).href)}
    resolveOwnFilesByName()
    for (const file of ${JSON.stringify(files)}) await import(file)
    console.log(process.moduleLoadList.join('\\n'))
    process.exit(0)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { maxBuffer: 2 ** 24 })
  const modules = stdout.split('\n')
  expect(modules).toContain('NativeModule http')
  expect(modules).not.toContain('NativeModule internal/deps/undici/undici')
})
