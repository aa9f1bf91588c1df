import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const isCheckout = existsSync(join(ROOT, '.git')) && spawnSync('git', ['--version']).status === 0
const SECTION = '\n## ['
const title = `npm run release${isCheckout ? '' : ': skipped because this is no git checkout'}`
const ENTRY = '\n### Portal\n\n- A change of this test.\n'

describe.skipIf(!isCheckout)(title, { timeout: 120_000 }, () => {
  let folder: string
  let clone: string
  /** The commit with something to release. */
  let before: string
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: clone, encoding: 'utf8' }).trim()
  const read = (file: string) => readFileSync(join(clone, file), 'utf8')
  const versionOf = () => JSON.parse(read('package.json')).version as string
  /** Runs npm without settings of the machine, and returns its exit code and output. */
  const npm = (...args: readonly string[]) => {
    const env = { PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env.PATH}`, HOME: folder, npm_config_offline: 'true' }
    const { status, stdout, stderr } = spawnSync('npm', args, { cwd: clone, env, encoding: 'utf8' })
    return { status, stdout, output: `${stdout}${stderr}` }
  }
  const writeChanges = (edit: (changes: string) => string) => {
    writeFileSync(join(clone, 'CHANGELOG.md'), edit(read('CHANGELOG.md')))
    git('commit', '--quiet', '--all', '--message', 'changes')
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'kis-release-'))
    clone = join(folder, 'clone')
    const identity = ['user.name=Test', 'user.email=test@example.com', 'core.hooksPath=none'].flatMap((each) => ['--config', each])
    execFileSync('git', ['clone', '--quiet', '--shared', ...identity, ROOT, clone], { stdio: 'inherit' })
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
    writeChanges((changes) => changes.replace('\n## [Unreleased]\n', (heading) => heading + ENTRY))
    before = git('rev-parse', 'HEAD')
  })
  beforeEach(() => {
    git('reset', '--quiet', '--hard', before)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('commits and tags a version, with its notes, in every file that holds the version', () => {
    const notes = read('CHANGELOG.md').split(SECTION)[1]!.replace('Unreleased]', '').trim()
    const [major, minor] = versionOf().split('.').map(Number)
    const version = `${major}.${minor! + 1}.0`
    const day = () => new Date().toISOString().slice(0, 10)
    const days = [day()]
    expect(npm('run', 'release', '--', 'minor')).toMatchObject({ status: 0 })
    days.push(day())

    expect(git('status', '--porcelain', '--untracked-files=no')).toBe('')
    expect(git('log', '--format=%s', `${before}..`)).toBe(`release ${version}`)
    expect(git('rev-parse', `v${version}^{commit}`)).toBe(git('rev-parse', 'HEAD'))
    // The lines added and removed of each file. Where the version is, one line takes the place of another.
    const changed = git('show', '--numstat', '--format=').split('\n').sort()
    expect(changed.filter((line) => !line.endsWith('\tschema/released.graphql'))).toEqual([
      '1\t1\tDockerfile',
      '1\t1\tdocker-compose.yml',
      '1\t1\tpackage.json',
      '2\t0\tCHANGELOG.md',
      '2\t2\thelm/Chart.yaml',
      '2\t2\tpackage-lock.json',
    ])
    expect(versionOf()).toBe(version)
    expect(JSON.parse(read('package-lock.json'))).toMatchObject({ version, packages: { '': { version } } })
    expect(read('Dockerfile')).toContain(`org.opencontainers.image.version="${version}"`)
    expect(read('docker-compose.yml')).toContain(`image: knowledge-and-inference-service:${version}\n`)
    expect(read('helm/Chart.yaml')).toContain(`\nversion: ${version}\nappVersion: ${version}\n`)
    expect(read('schema/released.graphql')).toMatch(`# Version ${version}, `)
    const headings = days.map((each) => `\n## [Unreleased]\n\n## [${version}] - ${each}\n`)
    expect(headings.some((each) => read('CHANGELOG.md').includes(each + ENTRY))).toBe(true)
    expect(npm('run', 'contract:check')).toMatchObject({ status: 0 })

    expect(notes).toContain(ENTRY.trim())
    expect(npm('run', '--silent', 'release:notes').stdout.trim()).toBe(notes)
    expect(git('tag', '--list', '--format=%(contents)', `v${version}`)).toBe(notes)
  })

  const empty = (text: string) => text.split(SECTION).toSpliced(1, 1, 'Unreleased]\n').join(SECTION)
  it.each([
    ['without changes', 'minor', empty, 'no entries under [Unreleased]'],
    ['that the changelog has', '9.9.9', (text: string) => `${text}${SECTION}9.9.9] - 2026-11-01\n`, 'CHANGELOG.md already has 9.9.9'],
    ['for trial', '9.9.9-rc.1', (text: string) => `${text}\n`, 'not a version of three numbers'],
  ])('refuses a release %s, and changes nothing', (_name, version, edit, problem) => {
    writeChanges(edit)
    const state = () => [git('rev-parse', 'HEAD'), git('status', '--porcelain', '--untracked-files=no'), git('tag')]
    const unchanged = state()
    const { status, output } = npm('run', 'release', '--', version)
    expect(output).toContain(problem)
    expect(status).not.toBe(0)
    expect(state()).toEqual(unchanged)
  })

  it('refuses changes that are not committed', () => {
    writeFileSync(join(clone, 'README.md'), 'Changed.')
    expect(npm('run', 'release', '--', 'minor').output).toContain('Git working directory not clean')
    expect(git('rev-parse', 'HEAD')).toBe(before)
  })
})
