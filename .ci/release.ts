// The steps of `npm run release` that npm does not do itself. CONTRIBUTING.md, "Releases", says how to release.
//   node .ci/release.ts check            exits with code 1 and every problem, before npm changes anything
//   node .ci/release.ts write            writes the new version into CHANGELOG.md and the files of VERSION_LINES
//   node .ci/release.ts tag              replaces the message of npm's tag by the notes
//   node .ci/release.ts notes [VERSION]  prints the section of CHANGELOG.md
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

/** The lines that hold the version, in files that npm does not write. `%` stands for the version. */
const VERSION_LINES: readonly (readonly [file: string, line: string])[] = [
  ['Dockerfile', '      org.opencontainers.image.version="%" \\'],
  ['docker-compose.yml', '  image: knowledge-and-inference-service:%'],
  ['helm/Chart.yaml', 'version: %'],
  ['helm/Chart.yaml', 'appVersion: %'],
]
const UNRELEASED = '\n## [Unreleased]\n'

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
/** Replaces text that a file has exactly once. */
function replaceOnce(file: string, before: string, after: string): void {
  const parts = read(file).split(before)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${before.trim()}`)
  writeFileSync(new URL(`../${file}`, import.meta.url), parts.join(after))
}
const lineWith = (line: string, version: string) => `\n${line.replace('%', version)}\n`

/** Returns the section of the changelog without its heading, or `undefined` if the changelog has no such version. */
function findSection(version: string): string | undefined {
  const section = read('CHANGELOG.md')
    .split('\n## [')
    .find((text) => text.startsWith(`${version}]`))
  return section?.slice(section.indexOf('\n')).trim()
}

function findProblems(from: string, to: string): readonly string[] {
  const isEmpty = !/^(?:-|\d+\.) /m.test(findSection('Unreleased') ?? '')
  return [
    ...(/^\d+\.\d+\.\d+$/.test(to) ? [] : [`${to} is not a version of three numbers.`]),
    ...(isEmpty ? ['CHANGELOG.md has no entries under [Unreleased]: there is nothing to release.'] : []),
    ...(findSection(to) === undefined ? [] : [`CHANGELOG.md already has ${to}: choose another version.`]),
    ...VERSION_LINES.filter(([file, line]) => !read(file).includes(lineWith(line, from))).map(
      ([file, line]) => `${file} has no line "${line.trim().replace('%', from)}": write the version of package.json there.`,
    ),
  ]
}

const { version } = JSON.parse(read('package.json')) as { readonly version: string }
const { npm_old_version: from = '', npm_new_version: to = '' } = process.env
const [, , command, wanted = version] = process.argv
if (command === 'check') {
  const problems = findProblems(from, to)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
} else if (command === 'write') {
  const date = new Date().toISOString().slice(0, 'YYYY-MM-DD'.length)
  replaceOnce('CHANGELOG.md', UNRELEASED, `${UNRELEASED}\n## [${to}] - ${date}\n`)
  for (const [file, line] of VERSION_LINES) replaceOnce(file, lineWith(line, from), lineWith(line, to))
} else {
  const notes = findSection(wanted)
  if (notes === undefined) throw new Error(`CHANGELOG.md has no version ${wanted}`)
  if (command === 'notes') console.log(notes)
  // `whitespace` keeps the headings, which git would take for comments.
  else if (command === 'tag')
    execFileSync('git', ['tag', '--force', '--annotate', '--cleanup=whitespace', '--file=-', `v${version}`], { input: notes })
  else throw new Error('Usage: node .ci/release.ts check | write | tag | notes [VERSION]')
}
