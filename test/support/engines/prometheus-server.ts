import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Json } from '../client.ts'
import { eventually } from '../eventually.ts'
import { freePorts } from '../processes/service.ts'

const RULES = fileURLToPath(new URL('../../../operate/prometheus/alerts.yaml', import.meta.url))
const READY_MS = 60_000

/** A real Prometheus that scrapes `ports` every second, and evaluates the alert rules of this project. */
export class PrometheusServer implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #url: string

  private constructor(child: ChildProcess, folder: string, url: string) {
    this.#child = child
    this.#folder = folder
    this.#url = url
  }

  /** `programs` is the folder that `test/engines/prometheus/get.sh` prints. */
  static async start(programs: string, ports: readonly number[]): Promise<PrometheusServer> {
    const folder = mkdtempSync(join(tmpdir(), 'kis-prometheus-'))
    const [port] = await freePorts(1)
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [RULES],
      scrape_configs: [{ job_name: 'kis', static_configs: [{ targets: ports.map((each) => `127.0.0.1:${each}`) }] }],
    }
    // JSON is YAML.
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
    const child = spawn(
      join(programs, 'prometheus'),
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    )
    const server = new PrometheusServer(child, folder, `http://127.0.0.1:${port}`)
    try {
      await eventually(async () => (await fetch(`${server.#url}/-/ready`).catch(() => null))?.status === 200, READY_MS)
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
    return server
  }

  /** What the HTTP API answers. @throws {Error} it refuses */
  async get(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Json> {
    const response = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const body = (await response.json()) as Json
    if (body.status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${body.error}`)
    return body.data
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
