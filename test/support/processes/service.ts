import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** A process that has not said `ready` by then has failed. */
const READY_MS = 60_000

/** One process of the service, started as a user starts it. */
export class ServiceProcess {
  readonly #child: ChildProcess
  readonly lines: string[] = []
  errors = ''

  private constructor(child: ChildProcess) {
    this.#child = child
    createInterface(child.stdout!).on('line', (line) => this.lines.push(line))
    child.stderr!.on('data', (text) => {
      this.errors = (this.errors + text).slice(-100_000)
    })
  }

  static async start(args: readonly string[], env: Readonly<Record<string, string>>, under?: readonly string[]): Promise<ServiceProcess> {
    const started = ServiceProcess.launch(args, env, under)
    try {
      await started.ready()
    } catch (error) {
      await started.end('SIGKILL')
      throw error
    }
    return started
  }

  /** Gives it before it is ready. `under`: a command that runs the one after it, as `strace` does. */
  static launch(args: readonly string[], env: Readonly<Record<string, string>>, under: readonly string[] = []): ServiceProcess {
    const [command, ...rest] = [...under, process.execPath, join(ROOT, 'cli/kis.js'), 'start', ...args]
    const child = spawn(command!, rest, {
      cwd: ROOT,
      // Nothing of the developer's own configuration reaches a test.
      env: { PATH: process.env.PATH ?? '', HOST: '127.0.0.1', PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return new ServiceProcess(child)
  }

  async ready(): Promise<void> {
    const deadline = Date.now() + READY_MS
    while (!this.address) {
      if (this.hasEnded) throw new Error(`the process ended before it was ready:\n${this.errors}`)
      if (Date.now() > deadline) throw new Error(`not ready within ${READY_MS} ms:\n${[...this.lines, this.errors].join('\n')}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** `http://127.0.0.1:4000`, once it is ready. */
  get address(): string | undefined {
    return this.lines.find((line) => line.startsWith('ready '))?.slice('ready '.length)
  }

  get printedKey(): string | undefined {
    return this.lines.join('\n').match(/kis_live_[A-Za-z0-9]{36}/)?.[0]
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!this.hasEnded) {
      this.#child.kill(signal)
      await once(this.#child, 'exit')
    }
    return this.#child.exitCode
  }
}

/** The whole service as its clients see it. */
export interface Service {
  /** Base address of `/v1`, without it. */
  readonly rest: string
  /** Address of `/graphql`. */
  readonly graphql: string
  /** The operator's key. */
  readonly key: string
  readonly folder: string
  /** Process by role; `all` in one process. */
  readonly processes: ReadonlyMap<string, ServiceProcess>
  /** Ends every process, `SIGTERM` unless told otherwise, and removes the data. */
  close(): Promise<void>
}

export const TEST_SECRET = 'a secret for tests, long enough to be one'

export interface ServiceOptions {
  /** Text of the catalog; default: the shipped one. */
  readonly catalog?: string
  readonly env?: Readonly<Record<string, string>>
  /** Keep what an earlier start left here; it is then the caller's to remove. */
  readonly folder?: string
  /** The command under which a process runs; `name` is its own, or `all`. */
  under?(name: string): readonly string[]
}

function prepare({ catalog, env = {}, folder }: ServiceOptions): { folder: string; env: Record<string, string>; clean: () => void } {
  const place = folder ?? mkdtempSync(join(tmpdir(), 'kis-test-'))
  const common: Record<string, string> = { KIS_RETRY_BACKOFF_MS: '20', ...env }
  if (catalog !== undefined) {
    common.KIS_CATALOG = join(place, 'catalog.yaml')
    writeFileSync(common.KIS_CATALOG, catalog)
  }
  return { folder: place, env: common, clean: () => folder ?? rmSync(place, { recursive: true, force: true }) }
}

/** `npm start`, on a free port and a fresh data folder. */
export async function startEmbedded(options: ServiceOptions = {}): Promise<Service> {
  const { folder, env, clean } = prepare(options)
  const started = await ServiceProcess.start([], { ...env, KIS_DATA_DIR: join(folder, 'data') }, options.under?.('all'))
  const address = started.address!
  return {
    rest: address,
    graphql: `${address}/graphql`,
    key: started.printedKey ?? '',
    folder,
    processes: new Map([['all', started]]),
    async close() {
      await started.end()
      clean()
    },
  }
}

/** The order in which they start; each needs those before it. */
const ROLES = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter'] as const
type Role = (typeof ROLES)[number]

export interface DistributedOptions extends ServiceOptions {
  /** Processes of a role, where they are more than one: then the stores must be MongoDB and Elasticsearch. */
  readonly replicas?: Partial<Record<Role, number>>
  /** Ports of a role's processes, where a test must know them before. Default: any free ones. */
  readonly ports?: Partial<Record<Role, readonly number[]>>
  /** What a process has in its environment beside what all have. */
  makeEnv?(name: string): Readonly<Record<string, string>>
}

export interface DistributedService extends Service {
  /** Base addresses of every rest-adapter. */
  readonly rests: readonly string[]
  /**
   * Ends a process as the signal does, `SIGTERM` unless told otherwise, and starts it again at its address. Gives its
   * exit code.
   */
  restart(name: string, signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * The five roles, each a process of its own, each subgraph on its own files unless `env` says otherwise. Processes are
 * named by role and number: `knowledge-1`.
 */
export async function startFiveProcesses(options: DistributedOptions = {}): Promise<DistributedService> {
  const { folder, env, clean } = prepare(options)
  const places: { readonly name: string; readonly role: Role; readonly port: number }[] = []
  for (const role of ROLES) {
    const ports = options.ports?.[role] ?? (await freePorts(options.replicas?.[role] ?? 1))
    places.push(...ports.map((port, i) => ({ name: `${role}-${i + 1}`, role, port })))
  }
  const addresses = (role: Role) => places.filter((place) => place.role === role).map(({ port }) => `http://127.0.0.1:${port}`)
  const urls = Object.fromEntries(ROLES.slice(0, 4).map((role) => [`KIS_${role.toUpperCase()}_URL`, addresses(role).join()]))
  const processes = new Map<string, ServiceProcess>()
  const start = async ({ name, role, port }: (typeof places)[number]) => {
    const own = { PORT: String(port), KIS_SECRET: TEST_SECRET, KIS_DATA_DIR: join(folder, name) }
    processes.set(name, await ServiceProcess.start([role], { ...env, ...urls, ...own, ...options.makeEnv?.(name) }, options.under?.(name)))
  }
  for (const place of places) await start(place)
  return {
    rest: addresses('rest-adapter')[0]!,
    rests: addresses('rest-adapter'),
    graphql: `${addresses('gateway')[0]!}/graphql`,
    key: processes.get('billing-1')!.printedKey ?? '',
    folder,
    processes,
    async restart(name, signal) {
      const code = await processes.get(name)!.end(signal)
      await start(places.find((place) => place.name === name)!)
      return code
    },
    async close() {
      for (const started of [...processes.values()].reverse()) await started.end()
      clean()
    },
  }
}

/** Ports that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
