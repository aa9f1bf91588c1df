import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** The wait for `ready`. A process that takes longer has failed. */
const READY_MS = 60_000
/** As `npm start`. */
const KIS = [process.execPath, '--max-semi-space-size=8', join(ROOT, 'cli/kis.js')]

/** One process of the service, started the way a user starts it. */
export class ServiceProcess {
  /** All that this file of tests has started. */
  static readonly started: ServiceProcess[] = []
  readonly #child: ChildProcess
  readonly lines: string[] = []
  errors = ''
  #ending?: { readonly code: number | null; readonly signal: NodeJS.Signals | null }

  private constructor(child: ChildProcess) {
    this.#child = child
    ServiceProcess.started.push(this)
    // `exit` may come before the last of the output.
    child.once('close', (code: number | null, signal: NodeJS.Signals | null) => {
      this.#ending = { code, signal }
    })
    createInterface(child.stdout!).on('line', (line) => this.lines.push(line))
    child.stderr!.on('data', (text) => {
      this.errors = (this.errors + text).slice(-100_000)
    })
  }

  static async start(...what: Parameters<typeof ServiceProcess.launch>): Promise<ServiceProcess> {
    const started = ServiceProcess.launch(...what)
    try {
      await started.ready()
    } catch (error) {
      await started.end('SIGKILL')
      throw error
    }
    return started
  }

  /**
   * Returns the process before it is ready. `under` is a command that runs the following one, such as `strace`. `kis` is
   * the command `kis` of another place than this checkout.
   */
  static launch(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    under: readonly string[] = [],
    kis: readonly string[] = KIS,
  ): ServiceProcess {
    const [command, ...rest] = [...under, ...kis, 'start', ...args]
    const child = spawn(command!, rest, {
      cwd: ROOT,
      // The developer's own configuration must not affect a test. Only tests of the portal need it.
      env: { PATH: process.env.PATH ?? '', HOST: '127.0.0.1', PORT: '0', KIS_PORTAL: 'off', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return new ServiceProcess(child)
  }

  async ready(): Promise<void> {
    const deadline = Date.now() + READY_MS
    while (!this.address) {
      if (this.#ending)
        throw new Error(
          `the process ended before it was ready, ${this.#ending.signal ?? `code ${this.#ending.code}`}:\n${[...this.lines, this.errors].join('\n')}`,
        )
      if (Date.now() > deadline) throw new Error(`not ready within ${READY_MS} ms:\n${[...this.lines, this.errors].join('\n')}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** True once the process has ended and all that it wrote has been read. */
  get hasEnded(): boolean {
    return this.#ending !== undefined
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** The address, such as `http://127.0.0.1:4000`, once the process is ready. */
  get address(): string | undefined {
    return this.lines.find((line) => line.startsWith('ready '))?.slice('ready '.length)
  }

  get printedKey(): string | undefined {
    return this.lines.join('\n').match(/kis_live_[A-Za-z0-9]{36}/)?.[0]
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!this.#ending) {
      this.#child.kill(signal)
      await once(this.#child, 'close')
    }
    return this.#child.exitCode
  }
}

/** A complete service as its clients see it. */
export interface Service {
  /** The base address of the REST API, without `/v1`. */
  readonly rest: string
  /** The address of `/graphql`. */
  readonly graphql: string
  /** The operator's key. */
  readonly key: string
  readonly folder: string
  /** The processes by role, or one process named `all`. */
  readonly processes: ReadonlyMap<string, ServiceProcess>
  /** Ends every process, with `SIGTERM` by default, and removes the data. */
  close(): Promise<void>
}

/** Variables of a process whose clock is ahead, so that nobody waits for what ends by time. */
export const clockWrongBy = (ms: number): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import=${new URL('wrong-clock.mjs', import.meta.url)}`,
  KIS_TEST_CLOCK_WRONG_MS: String(ms),
})

export const TEST_SECRET = 'a secret for tests, long enough to be one'

export interface ServiceOptions {
  /** The text of the catalog. The shipped catalog is the default. */
  readonly catalog?: string
  readonly env?: Readonly<Record<string, string>>
  /** A folder with the data of an earlier start. The caller must remove it. */
  readonly folder?: string
  /** Returns the command that a process runs under. `name` is the name of the process, or `all`. */
  under?(name: string): readonly string[]
  /** Returns the command `kis` of another place than this checkout. `folder` is what it may write. */
  kis?(folder: string): readonly string[]
}

function prepare({ catalog, env = {}, folder }: ServiceOptions): { folder: string; env: Record<string, string>; clean: () => void } {
  const folderPath = folder ?? mkdtempSync(join(tmpdir(), 'kis-test-'))
  const common: Record<string, string> = { KIS_RETRY_BACKOFF_MS: '20', ...env }
  if (catalog !== undefined) {
    common.KIS_CATALOG = join(folderPath, 'catalog.yaml')
    writeFileSync(common.KIS_CATALOG, catalog)
  }
  return { folder: folderPath, env: common, clean: () => folder ?? rmSync(folderPath, { recursive: true, force: true }) }
}

/** Runs `npm start` on a free port, with a new data folder. */
export async function startEmbedded(options: ServiceOptions = {}): Promise<Service> {
  const { folder, env, clean } = prepare(options)
  const started = await ServiceProcess.start(
    [],
    { ...env, KIS_DATA_DIR: join(folder, 'data') },
    options.under?.('all'),
    options.kis?.(folder),
  )
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

const ROLES = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter'] as const
type Role = (typeof ROLES)[number]
/** The order of the start. Each role needs those before it. */
const STAGES: readonly (readonly Role[])[] = [['billing'], ['knowledge', 'inference'], ['gateway'], ['rest-adapter']]

export interface DistributedOptions extends ServiceOptions {
  /** The number of processes of a role if it has several. The stores must then be MongoDB and Elasticsearch. */
  readonly replicas?: Partial<Record<Role, number>>
  /** The ports of a role's processes, if a test needs them in advance. Free ports are the default. */
  readonly ports?: Partial<Record<Role, readonly number[]>>
  /** Returns the additional environment of a process. */
  createEnv?(name: string): Readonly<Record<string, string>>
}

export interface DistributedService extends Service {
  /** The base addresses of all REST adapters. */
  readonly rests: readonly string[]
  /**
   * Ends a process with the signal, `SIGTERM` by default, and starts it again at its address. Returns its exit code.
   */
  restart(name: string, signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * Starts the five roles in processes of their own. Each subgraph has its own files unless `env` sets other stores.
 * Processes are named by role and number, such as `knowledge-1`.
 */
export async function startFiveProcesses(options: DistributedOptions = {}): Promise<DistributedService> {
  const { folder, env, clean } = prepare(options)
  const plannedProcesses: { readonly name: string; readonly role: Role; readonly port: number }[] = []
  for (const role of ROLES) {
    const ports = options.ports?.[role] ?? (await freePorts(options.replicas?.[role] ?? 1))
    plannedProcesses.push(...ports.map((port, i) => ({ name: `${role}-${i + 1}`, role, port })))
  }
  const addresses = (role: Role) =>
    plannedProcesses.filter((planned) => planned.role === role).map(({ port }) => `http://127.0.0.1:${port}`)
  const urls = Object.fromEntries(ROLES.slice(0, 4).map((role) => [`KIS_${role.toUpperCase()}_URL`, addresses(role).join()]))
  const processes = new Map<string, ServiceProcess>()
  const start = ({ name, role, port }: (typeof plannedProcesses)[number]) => {
    const own = { PORT: String(port), KIS_SECRET: TEST_SECRET, KIS_DATA_DIR: join(folder, name) }
    const launched = ServiceProcess.launch([role], { ...env, ...urls, ...own, ...options.createEnv?.(name) }, options.under?.(name))
    processes.set(name, launched)
    return launched.ready()
  }
  const inStages = async (stages: typeof STAGES, act: (place: (typeof plannedProcesses)[number]) => Promise<unknown>) => {
    for (const roles of stages) await Promise.all(plannedProcesses.filter(({ role }) => roles.includes(role)).map(act))
  }
  const endAll = async (signal?: NodeJS.Signals) => {
    await inStages(STAGES.toReversed(), async ({ name }) => processes.get(name)?.end(signal))
    clean()
  }
  try {
    await inStages(STAGES, start)
  } catch (error) {
    await endAll('SIGKILL')
    throw error
  }
  return {
    rest: addresses('rest-adapter')[0]!,
    rests: addresses('rest-adapter'),
    graphql: `${addresses('gateway')[0]!}/graphql`,
    key: processes.get('billing-1')!.printedKey ?? '',
    folder,
    processes,
    async restart(name, signal) {
      const code = await processes.get(name)!.end(signal)
      await start(plannedProcesses.find((planned) => planned.name === name)!)
      return code
    },
    close: () => endAll(),
  }
}

/**
 * Below the ports that Linux (32768 and up), macOS and Windows (49152 and up) give to outgoing connections and to `listen(0)`: nothing takes a
 * port of these between its choice and its use.
 */
const FIRST_PORT = 10_240
/** Each worker of a test run has ports of its own. */
const PORTS_PER_WORKER = 1_000
const WORKERS = 16
/** A second run on the same machine begins elsewhere. */
let lastPort = process.pid

/** Returns ports that are free, and that this worker has not given out before, as long as it has such. */
export async function freePorts(count: number): Promise<number[]> {
  const first = FIRST_PORT + (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS) * PORTS_PER_WORKER
  const ports: number[] = []
  for (let tries = 0; ports.length < count; tries++) {
    if (tries === PORTS_PER_WORKER) throw new Error(`no ${count} ports are free from ${first} to ${first + PORTS_PER_WORKER - 1}`)
    const port = first + (lastPort++ % PORTS_PER_WORKER)
    if (await isFree(port)) ports.push(port)
  }
  return ports
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  await new Promise((resolve) => server.close(resolve))
  return true
}
