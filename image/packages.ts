/**
 * Copies the files of packages that the service can load into FOLDER/node_modules: `node image/packages.ts FOLDER`.
 *
 * What it leaves out: packages that only development needs, libraries for other systems, types, source maps, builds for
 * browsers and for other module formats.
 */
import { copyFile, globSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { arch, chdir, platform } from 'node:process'
import { promisify } from 'node:util'
import { nodeFileTrace } from '@vercel/nft'
import { BINARIES, fromPackage, isUnneeded } from './unneeded.js'

/** Folders of code that runs in the service; what they import from elsewhere is found. */
const CODE = ['cli', 'gateway', 'portal/server', 'rest-adapter', 'subgraphs']
const TESTS = /\.test\.ts$|\/test-support\/|\/__fixtures__\//

/** Files that are read by a name that is put together at run time. A pattern without a file is an error. */
const READ_BY_NAME = [
  '@hyzyla/pdfium/dist/*.wasm',
  '@tesseract.js-data/*/4.0.0_best_int/*.gz',
  'pdfjs-dist/cmaps/*',
  'pdfjs-dist/legacy/build/pdf.worker.mjs',
  'tesseract.js-core/tesseract-core-simd-lstm.{js,wasm}',
  'usearch/prebuilds/*/*.node',
]

/** Goes with each package that is copied. */
const TOLD_BY_PACKAGES = '{package.json,LICEN[CS]E*,licen[cs]e*,NOTICE*,COPYING*}'

type Lock = { packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }> }

export async function packageFiles(root: string): Promise<string[]> {
  chdir(root)
  const code = CODE.flatMap((folder) => globSync(`${folder}/**/*.{ts,js}`)).filter((file) => !TESTS.test(file))
  const { fileList } = await nodeFileTrace(code, { base: root, ts: true, readFile: readCode })
  const named = READ_BY_NAME.flatMap((pattern) => {
    const found = globSync(`node_modules/${pattern}`)
    if (found.length === 0) throw new Error(`No file is left of ${pattern}: change the list in image/packages.ts.`)
    return found
  })
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock
  const files = new Set<string>()
  for (const file of [...fileList, ...named]) {
    const folder = packageFolder(file)
    if (!folder) continue
    const entry = packages[folder]
    if (!entry || entry.dev || entry.optional || entry.devOptional || isOfAnotherSystem(file)) continue
    if (!statSync(file).isFile()) continue
    if (isUnneeded(fromPackage(file), { platform, arch, hasOwnNode: true }))
      throw new Error(`The service can load ${file}, which \`npm run slim\` removes: change image/unneeded.js.`)
    files.add(file)
    for (const told of globSync(`${folder}/${TOLD_BY_PACKAGES}`)) files.add(told)
  }
  return [...files].sort()
}

/** Returns the folder of the innermost package that a file belongs to: `node_modules/a/node_modules/@b/c`. */
function packageFolder(file: string): string | undefined {
  const steps = file.split('/')
  const place = steps.lastIndexOf('node_modules')
  return place < 0 ? undefined : steps.slice(0, place + (steps[place + 1]?.startsWith('@') ? 3 : 2)).join('/')
}

function isOfAnotherSystem(file: string): boolean {
  const [, system, processors] = BINARIES.exec(fromPackage(file)) ?? []
  return system !== undefined && (system !== platform || !processors!.split('+').includes(arch))
}

/**
 * Reads as the tracer wants it: null is a file that is not there. One file at a time, because the tracer asks for all at
 * once, and a process may have only 1,024 open.
 */
async function readCode(path: string): Promise<string | Buffer | null> {
  let text: Buffer
  try {
    text = readFileSync(path)
  } catch (error) {
    if (['ENOENT', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  }
  return path.endsWith('.ts') && !path.includes('/node_modules/') ? stripTypeScriptTypes(text.toString()) : text
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (!folder) throw new Error('Name the folder that gets the packages: node image/packages.ts FOLDER')
  const files = await packageFiles(join(import.meta.dirname, '..'))
  for (const file of files) {
    const target = join(folder, file)
    mkdirSync(dirname(target), { recursive: true })
    await promisify(copyFile)(file, target)
  }
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
  process.stdout.write(`${files.length} files of packages, ${Math.round(bytes / 1e6)} MB\n`)
}
