import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createCaller } from '../test/support/client.ts'
import { residentBytes } from '../test/support/processes/resident-bytes.ts'
import { type Service, startEmbedded, startFiveProcesses } from '../test/support/processes/service.ts'
import type { BenchRow } from './row.ts'
import { residentBytesOfTree } from './support/process-tree.ts'
import { quantile } from './support/quantile.ts'

const ROUNDS = 3

/** Time in which the garbage of the start is collected. */
const SETTLES_MS = 3_000

/**
 * Measures the time from starting the process to its line `ready`, checked every 20 ms, and the resources of a started
 * service.
 */
export async function benchStart(): Promise<BenchRow[]> {
  const cold: number[] = []
  const warm: number[] = []
  const bare: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const folder = await mkdtemp(join(tmpdir(), 'kis-bench-start-'))
    try {
      for (const times of [cold, warm]) {
        const start = performance.now()
        const service = await startEmbedded({ folder })
        times.push(performance.now() - start)
        await service.close()
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    const start = performance.now()
    await promisify(execFile)(process.execPath, ['-e', '0'])
    bare.push(performance.now() - start)
  }
  const beside = `node without a program ${seconds(bare)}`
  return [
    ...(await benchResident()),
    { what: 'start to ready, new data folder', figure: seconds(cold), target: '≤ 3 s', beside },
    { what: 'start to ready, the same folder again', figure: seconds(warm), target: '≤ 3 s', beside },
  ]
}

/**
 * Measures the resident memory at `ready` and after the first embedding: of the whole service, and of each role alone.
 */
async function benchResident(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const [start, bar] of [
    [startEmbedded, '≤ 500 MB'],
    [startFiveProcesses, ''],
  ] as const) {
    const service: Service = await start()
    const measure = async (when: string) => {
      await sleep(SETTLES_MS)
      for (const [name, { pid }] of service.processes) {
        const bytes = residentBytes(pid)
        const figure = bytes === null ? 'not known on this system' : megabytes(bytes)
        // The parser's process does not exist before the first document.
        const beside = bytes === null ? '' : `with its child processes ${megabytes(residentBytesOfTree(pid))}`
        rows.push({ what: `resident ${when}: ${name}`, figure, target: bar, beside })
      }
    }
    try {
      await measure('at ready')
      const caller = createCaller(service, service.key)
      await caller.rest('POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: ['hello'] })
      await measure('after the first embedding')
    } finally {
      await service.close()
    }
  }
  return rows
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MB`
}

function seconds(times: readonly number[]): string {
  return `${(quantile(times, 0.5) / 1_000).toFixed(2)} s`
}
