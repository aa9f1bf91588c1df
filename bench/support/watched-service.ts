import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Caller, createCaller } from '../../test/support/client.ts'
import { Child } from './child.ts'
import type { Delay, Started } from './event-loop-process.ts'

/** The whole service in its own process, which reports its event-loop delay. */
export class WatchedService implements AsyncDisposable {
  readonly #child: Child
  readonly #folder: string
  readonly dataFolder: string
  readonly caller: Caller
  readonly rest: string

  private constructor(child: Child, folder: string, { lines }: Started) {
    this.#child = child
    this.#folder = folder
    this.dataFolder = join(folder, 'data')
    const text = lines.join('\n')
    this.rest = /^ready (.+)$/m.exec(text)![1]!
    this.caller = createCaller({ rest: this.rest, graphql: `${this.rest}/graphql` }, /kis_live_\w+/.exec(text)![0])
  }

  static async start(catalog: string): Promise<WatchedService> {
    const folder = await mkdtemp(join(tmpdir(), 'kis-bench-watched-'))
    const KIS_CATALOG = join(folder, 'catalog.yaml')
    await writeFile(KIS_CATALOG, catalog)
    // The cache of `npm start`.
    const NODE_COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url))
    const env = {
      PATH: process.env.PATH,
      PORT: '0',
      KIS_PORTAL: 'off',
      KIS_CATALOG,
      KIS_DATA_DIR: join(folder, 'data'),
      NODE_COMPILE_CACHE,
    }
    const child = new Child('./event-loop-process.ts', ['service'], env, ['--max-semi-space-size=8'])
    try {
      return new WatchedService(child, folder, await child.nextMessage<Started>())
    } catch (error) {
      await child[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  get pid(): number {
    return this.#child.pid
  }

  /** Returns the event-loop delay since the last request. */
  delay(): Promise<Delay> {
    return this.#child.request<Delay>({})
  }

  /** Returns how many handles, requests and timers keep its main thread busy or alive. */
  resources(): Promise<number> {
    return this.#child.request<number>({ resources: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Returns, for example, `p50 0.1 ms, p99 4.0 ms, longest 12 ms`. */
export function delayText({ p50, p99, max }: Delay): string {
  return `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(0)} ms`
}
