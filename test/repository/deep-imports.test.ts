import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A module inside a package, however the code names it. Template strings and joined ones are for the reader of the code. */
const INSIDE = /(?:\bfrom|\bimport|\bimport\(|\brequire\(|\bresolve\(|\bfindFile\()\s*['"`]((?:@[\w.-]+\/)?[\w-][\w.-]*)\/([^'"`]+)['"`]/g
/** A folder of what a package is built from or into. `exports` that open it whole do not make its files an interface. */
const BUILT = /^(?:dist|lib|build|src|legacy|cjs|esm)\//
/** Modules that packages name for their users by such paths, each with where. */
const NAMED: Readonly<Record<string, string>> = {
  'ajv/dist/2020.js': 'https://ajv.js.org/json-schema.html',
  '@xyflow/react/dist/base.css': 'https://reactflow.dev/learn/customization/theming',
  '@hyzyla/pdfium/dist/index.esm.browser.js': '`exports` of its package.json',
  'pdfjs-dist/legacy/build/pdf.mjs': 'pdf.js asks for it on Node; https://github.com/mozilla/pdf.js/wiki/Frequently-Asked-Questions',
  'pdfjs-dist/package.json': 'the folder of `cMapUrl`; https://mozilla.github.io/pdf.js/api/draft/module-pdfjsLib.html',
  'tesseract.js-core/tesseract-core-simd-lstm.js': 'one of its builds, of which its user chooses',
  'tesseract.js-core/tesseract-core-simd-lstm.wasm': 'one of its builds, of which its user chooses',
}

const product = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js'], { cwd: ROOT, encoding: 'utf8' })
  .trimEnd()
  .split('\n')
  .filter((file) => existsSync(join(ROOT, file)) && !/^(test|bench)\/|\.test\.tsx?$|\/test-support\//.test(file))
  .map((file) => ({ file, code: readFileSync(join(ROOT, file), 'utf8') }))

/** Reports whether a package names its modules itself. Node refuses to import others of it. */
function hasExports(name: string): boolean {
  const path = join(ROOT, 'node_modules', name, 'package.json')
  return existsSync(path) && (JSON.parse(readFileSync(path, 'utf8')) as { readonly exports?: unknown }).exports !== undefined
}

it('imports of the product name no modules inside packages', () => {
  const found = product.flatMap(({ file, code }) =>
    [...code.matchAll(INSIDE)]
      .map(([, name, path]) => ({ file, name: name!, path: path! }))
      .filter(({ name }) => existsSync(join(ROOT, 'node_modules', name)))
      .filter(({ name, path }) => BUILT.test(path) || !hasExports(name))
      .map(({ name, path }) => ({ file, module: `${name}/${path}` })),
  )
  expect(new Set(found.map(({ module }) => module))).toContain('pdfjs-dist/legacy/build/pdf.mjs')
  expect(found.filter(({ module }) => !(module in NAMED))).toEqual([])
})

it('packages run unmodified: no hook changes their code at load time', () => {
  const hooks = product.filter(({ code }) => /\bregisterHooks\(|\bmodule\.register\(/.test(code))
  expect(hooks.map(({ file }) => file)).toEqual(['subgraphs/knowledge/adapters/parser/no-network.ts'])
  expect(hooks.filter(({ code }) => /\bload\b\s*[(:]/.test(code))).toEqual([])
})
