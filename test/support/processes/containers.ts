import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, globSync, linkSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The parts of a service in `docker-compose.yml` that tests need. */
export interface ComposeService {
  readonly image: string
  readonly build?: string
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly (string | { readonly source: string; readonly target: string; readonly read_only?: boolean })[]
  readonly networks: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly profiles?: readonly string[]
  readonly stop_grace_period?: string
  readonly restart?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly mem_limit?: string
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly container_name?: string
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>
}

/**
 * Reads the compose file with the variables filled in.
 * @throws {Error} if a required variable is missing.
 */
export function readCompose(variables: Readonly<Record<string, string>>): Compose {
  const fill = (node: unknown): unknown => {
    if (typeof node === 'string') return interpolate(node, variables)
    if (Array.isArray(node)) return node.map(fill)
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, fill(value)]))
  }
  return fill(parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true })) as Compose
}

/** Interpolates like Compose, in the forms that the file uses: `$$`, `${NAME:-default}`, `${NAME:+other}` and `${NAME:?message}`. */
export function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:(\$)|\{(\w+):([-+?])([^}]*)\})?/g, (form, dollar, name, kind, rest) => {
    if (dollar) return '$'
    if (!name) throw new Error(`a form of interpolation that is not read here: ${text}`)
    const value = variables[name]
    if (kind === '+') return value ? rest : ''
    if (value) return value
    if (kind === '?') throw new Error(`required variable ${name} ${rest}`)
    return form && rest
  })
}

/** The properties that the last stage of the `Dockerfile` gives a container. */
export interface Image {
  readonly bases: readonly string[]
  /** The last commands of the build, in exec form. */
  readonly built: readonly (readonly string[])[]
  readonly environment: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly user: string
  readonly stopSignal: string
  readonly port: number
  readonly healthCheck: readonly string[]
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
}

export function readDockerfile(): Image {
  const instructions = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const last = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')))
  const findArguments = (name: string, among = last) =>
    among.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1).trim())
  const only = (name: string) => findArguments(name).at(-1)!
  const pairs = (name: string) =>
    Object.fromEntries(
      [
        ...findArguments(name)
          .join(' ')
          .matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g),
      ].map((match) => [match[1]!, match[2] ?? match[3]!]),
    )
  return {
    bases: findArguments('FROM', instructions).map((from) => from.split(' ')[0]!),
    built: findArguments('RUN', instructions).flatMap((run) => (run.startsWith('[') ? [JSON.parse(run)] : [])),
    environment: pairs('ENV'),
    labels: pairs('LABEL'),
    user: only('USER'),
    stopSignal: only('STOPSIGNAL'),
    port: Number(only('EXPOSE')),
    healthCheck: JSON.parse(only('HEALTHCHECK').replace(/^.*?CMD /, '')),
    entrypoint: JSON.parse(only('ENTRYPOINT')),
    command: JSON.parse(only('CMD')),
  }
}

/**
 * Reports whether `.dockerignore` lets a path into the image. The last pattern that matches the path or a folder above
 * it decides.
 */
export function reachesImage(path: string): boolean {
  const steps = path.split('/')
  const paths = steps.map((_, i) => steps.slice(0, i + 1).join('/'))
  const last = IGNORE_RULES.findLast(({ pattern }) => paths.some((prefix) => pattern.test(prefix)))
  return last === undefined || last.isException
}

const IGNORE_RULES = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line && !line.startsWith('#'))
  .map((line) => ({ isException: line.startsWith('!'), pattern: toPattern(line.replace(/^!/, '')) }))

/** Converts a glob: `**` matches any folders, and `*` any characters of one name, including a leading dot. */
function toPattern(glob: string): RegExp {
  const source = glob.replace(/[.+?^$()[\]{}|\\]/g, '\\$&').replace(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(?:.*/)?'))
  return new RegExp(`^${source}$`)
}

/** Returns the project's files that the image contains. */
export const imageFiles = () => filesUnder(ROOT).filter(reachesImage)

/**
 * Creates the image's `/app` in a folder: its files, and the packages that `npm ci` installs without development and
 * optional ones.
 */
export function layOutImage(folder: string): void {
  for (const file of imageFiles()) copyFile(join(ROOT, file), join(folder, file))
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean; readonly devOptional?: boolean }>>
  }
  for (const [path, { dev, optional, devOptional }] of Object.entries(packages)) {
    if (!path || dev || optional || devOptional) continue
    for (const file of filesUnder(join(ROOT, path))) copyFile(join(ROOT, path, file), join(folder, path, file))
  }
}

/** Links a file if the file system can, and copies it otherwise. There are some hundred megabytes. */
function copyFile(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

/** Returns the paths of the files, relative to the folder, without packages, history and data. */
export function filesUnder(folder: string): readonly string[] {
  return globSync('**', { cwd: folder, withFileTypes: true, exclude: ({ name }) => ['node_modules', '.git', 'data'].includes(name) })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

/** Converts a duration such as `40s` to milliseconds. */
export function durationMs(text: string): number {
  const match = /^(\d+)(ms|s|m)$/.exec(text)
  if (!match) throw new Error(`not a duration: ${text}`)
  return Number(match[1]) * { ms: 1, s: 1_000, m: 60_000 }[match[2] as 'ms' | 's' | 'm']
}

/** A process of a container that runs on this machine with the container's environment only. */
export class ContainerProcess {
  readonly #child: ChildProcess
  readonly #environment: Readonly<Record<string, string>>
  #hasEnded = false
  output = ''

  constructor(command: readonly string[], environment: Readonly<Record<string, string>>, folder: string) {
    // `node` is the version that runs the tests, as in the image's base.
    this.#environment = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, ...environment }
    this.#child = spawn(command[0]!, command.slice(1), { cwd: folder, env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on('data', (text) => {
        this.output = (this.output + text).slice(-100_000)
      })
    }
    // `exit` may come before the last of the output.
    this.#child.once('close', () => {
      this.#hasEnded = true
    })
  }

  /** The exit code, or the name of the signal that ended the process. Null until it has ended and its output is complete. */
  get exitCode(): number | string | null {
    return this.#hasEnded ? (this.#child.exitCode ?? this.#child.signalCode) : null
  }

  /** Runs a command beside the process, like `docker exec`, and returns its exit code. */
  run(command: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<number> {
    return new Promise((resolve) => {
      execFile(command[0]!, command.slice(1), { env: { ...this.#environment, ...more } }, (error) =>
        resolve(error ? Number(error.code ?? 1) : 0),
      )
    })
  }

  /**
   * Stops the process like Docker, with SIGKILL after the grace period. Returns the exit code, or the signal that ended
   * it.
   */
  async stop(signal: string, graceMs: number): Promise<number | string | null> {
    if (this.exitCode !== null) return this.exitCode
    const exit = once(this.#child, 'close')
    this.#child.kill(signal as NodeJS.Signals)
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), graceMs)
    await exit
    clearTimeout(kill)
    return this.exitCode
  }
}
