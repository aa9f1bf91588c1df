import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A process that has not said `ready` by then has failed. */
const READY_MS = 30_000

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

  static async start(args: readonly string[], env: Readonly<Record<string, string>>): Promise<ServiceProcess> {
    const started = ServiceProcess.launch(args, env)
    try {
      await started.ready()
    } catch (error) {
      await started.end('SIGKILL')
      throw error
    }
    return started
  }

  /** Gives it before it is ready. */
  static launch(args: readonly string[], env: Readonly<Record<string, string>>): ServiceProcess {
    const child = spawn(process.execPath, [join(ROOT, 'cli/kis.js'), 'start', ...args], {
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
  const started = await ServiceProcess.start([], { ...env, KIS_DATA_DIR: join(folder, 'data') })
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

/** The five roles, each a process of its own, each subgraph on its own files. */
export async function startFiveProcesses(options: ServiceOptions = {}): Promise<Service> {
  const { folder, env, clean } = prepare(options)
  const ports = await freePorts(3)
  const urls = Object.fromEntries(
    ['BILLING', 'KNOWLEDGE', 'INFERENCE'].map((name, i) => [`KIS_${name}_URL`, `http://127.0.0.1:${ports[i]}`]),
  )
  const shared = { ...env, ...urls, KIS_SECRET: TEST_SECRET }
  const role = (name: string, more: Record<string, string> = {}) =>
    ServiceProcess.start([name], { ...shared, KIS_DATA_DIR: join(folder, name), ...more })
  const processes = new Map<string, ServiceProcess>()
  for (const [i, name] of ['billing', 'knowledge', 'inference'].entries()) processes.set(name, await role(name, { PORT: String(ports[i]) }))
  const gateway = await role('gateway')
  processes.set('gateway', gateway)
  const adapter = await role('rest-adapter', { KIS_GATEWAY_URL: gateway.address! })
  processes.set('rest-adapter', adapter)
  return {
    rest: adapter.address!,
    graphql: `${gateway.address!}/graphql`,
    key: processes.get('billing')!.printedKey ?? '',
    folder,
    processes,
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
