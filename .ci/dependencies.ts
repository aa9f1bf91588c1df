// Reports the dependencies that the service ships, from `package-lock.json` alone: the same on every machine and by
// every npm.
//   node .ci/dependencies.ts sbom    prints its bill of materials, CycloneDX 1.6
//   node .ci/dependencies.ts check   checks licences and install scripts; exits with code 1 and every problem
import { readFileSync } from 'node:fs'

interface LockedPackage {
  readonly name?: string
  readonly version?: string
  readonly license?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** Packages by their path below the project, as in `package-lock.json`; `''` is the project itself. */
export type Lock = Readonly<Record<string, LockedPackage>>

/** Licences that require no more than their notice. */
const ALLOWED = new Set([
  'MIT',
  'MIT-0',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
  'Zlib',
  'CC0-1.0',
])
const SPDX: ReadonlySet<string> = new Set([...ALLOWED, 'Elastic-2.0'])
const FEDERATION = 'Apollo federation; not to be offered as a managed service by itself (README, "Licences")'
/** Packages under other licences, each with the reason why it may be shipped. */
const OTHER_LICENCES: Readonly<Record<string, readonly [licence: string, reason: string]>> = {
  '@apollo/composition': ['Elastic-2.0', FEDERATION],
  '@apollo/federation-internals': ['Elastic-2.0', FEDERATION],
  '@apollo/gateway': ['Elastic-2.0', FEDERATION],
  '@apollo/query-graphs': ['Elastic-2.0', FEDERATION],
  '@apollo/query-planner': ['Elastic-2.0', FEDERATION],
  duck: ['BSD', 'its LICENSE is the BSD 2-clause text'],
  usearch: ['Apache 2.0', 'its LICENSE is the text of Apache-2.0'],
}
/** Packages with an install script, each with what it would do. None is run: `.npmrc` has `ignore-scripts`. */
const INSTALL_SCRIPTS: Readonly<Record<string, string>> = {
  '@apollo/protobufjs': 'warns of version ranges in the package that installs it',
  usearch: 'looks for the binary of this system, which the package has for glibc, macOS and Windows',
  'onnxruntime-node': 'downloads CUDA libraries, which the embedded model does not use',
}

/** Returns everything that is installed with `--omit=dev`. */
function listShipped(lock: Lock): readonly (readonly [path: string, LockedPackage])[] {
  return Object.entries(lock).filter(([path, { dev }]) => path !== '' && !dev)
}

function packageName(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** Whether the allowed licences alone satisfy an SPDX expression of one level. */
function isAllowed(expression: string): boolean {
  const choices = expression.replace(/^\((.*)\)$/, '$1').split(' OR ')
  return choices.some((choice) => choice.split(' AND ').every((licence) => ALLOWED.has(licence)))
}

/** Returns a sentence for each package that must not be shipped as it is. */
export function findProblems(lock: Lock): readonly string[] {
  const shipped = listShipped(lock).map(([path, locked]) => ({ ...locked, name: packageName(path) }))
  const names = new Set(shipped.map(({ name }) => name))
  const stale = [...Object.keys(OTHER_LICENCES), ...Object.keys(INSTALL_SCRIPTS)].filter((name) => !names.has(name))
  return [
    ...shipped.flatMap(({ name, version, license = 'no licence' }) =>
      isAllowed(license) || OTHER_LICENCES[name]?.[0] === license ? [] : `${name}@${version} is under ${license}`,
    ),
    ...shipped.flatMap(({ name, version, hasInstallScript }) =>
      hasInstallScript && !Object.hasOwn(INSTALL_SCRIPTS, name) ? `${name}@${version} has an install script` : [],
    ),
    ...stale.map((name) => `${name} is an exception and not a dependency any more`),
  ]
}

const toPurl = (name: string, version: string | undefined) => `pkg:npm/${name.replace('@', '%40')}@${version}`

/**
 * Returns the path at which Node finds a package, from the package at `from`; undefined: an optional one that is not
 * locked.
 */
function resolved(lock: Lock, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    const path = `${folder && `${folder}/`}node_modules/${name}`
    if (lock[path]) return path
    if (folder === '') return undefined
  }
}

/** Builds the bill of materials without times and serial numbers: the same lock results in the same text. */
export function buildSbom(lock: Lock): unknown {
  const root = lock['']!
  const toRef = (path: string) => toPurl(path === '' ? root.name! : packageName(path), lock[path]!.version)
  const toLicenses = (license = 'NOASSERTION') => [
    /[ ()]/.test(license) ? { expression: license } : { license: SPDX.has(license) ? { id: license } : { name: license } },
  ]
  const components = new Map<string, unknown>()
  const edges = new Map<string, Set<string>>()
  for (const [path, locked] of [['', root] as const, ...listShipped(lock)]) {
    const purl = toRef(path)
    const [algorithm, digest] = locked.integrity?.split('-') ?? []
    const [name, group] = packageName(path).split('/').reverse()
    if (path !== '')
      components.set(purl, {
        type: 'library',
        'bom-ref': purl,
        ...(group && { group }),
        name,
        version: locked.version,
        scope: locked.optional ? 'optional' : 'required',
        ...(digest && {
          hashes: [{ alg: algorithm!.toUpperCase().replace('SHA', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }],
        }),
        licenses: toLicenses(locked.license),
        purl,
      })
    const wanted = Object.keys({ ...locked.dependencies, ...locked.optionalDependencies, ...(path !== '' && locked.peerDependencies) })
    const found = wanted.flatMap((each) => resolved(lock, path, each) ?? []).filter((each) => !lock[each]!.dev)
    const to = edges.get(purl) ?? new Set()
    for (const each of found) to.add(toRef(each))
    edges.set(purl, to)
  }
  const sorted = <T>(entries: Iterable<readonly [string, T]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': toRef(''),
        name: root.name,
        version: root.version,
        licenses: toLicenses(root.license),
        purl: toRef(''),
      },
    },
    components: sorted(components).map(([, component]) => component),
    dependencies: sorted(edges).map(([ref, to]) => ({ ref, dependsOn: [...to].sort() })),
  }
}

if (import.meta.main) {
  const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as { readonly packages: Lock }
  if (process.argv[2] === 'sbom') console.log(JSON.stringify(buildSbom(packages), null, 2))
  else {
    const problems = findProblems(packages)
    for (const problem of problems) console.error(problem)
    process.exitCode = problems.length > 0 ? 1 : 0
  }
}
