import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A module inside a package, not what the package names for its users. */
const DEEP = /(?:from|import\(|require\()\s*'((?:@[\w-]+\/)?[\w-]+\/(?:dist|lib|build|src)\/[^']*)'/g
/** Modules that packages name for their users by such paths, each with where. */
const NAMED: Readonly<Record<string, string>> = {
  'ajv/dist/2020.js': 'https://ajv.js.org/json-schema.html',
  '@hyzyla/pdfium/dist/index.esm.browser.js': '`exports` of its package.json',
}
/** `subgraphs/common/http-client.ts` says why. */
const UNDICI = /^undici\/lib\//

it('imports of the product name no modules inside packages', () => {
  const list = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js'], { cwd: ROOT, encoding: 'utf8' }).trimEnd().split('\n')
  const product = list.filter((file) => !/^(test|bench)\/|\.test\.tsx?$|\/test-support\//.test(file))
  const found = product.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(DEEP)].map(([, module]) => ({ file, module: module! })),
  )
  expect(found.length).toBeGreaterThan(0)
  expect(found.filter(({ module }) => !(module in NAMED) && !UNDICI.test(module))).toEqual([])
})
