import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startEmbedded } from '../test/support/processes/service.ts'
import type { BenchRow } from './row.ts'
import { quantile } from './support/quantile.ts'

const ROUNDS = 3

/** The time from starting the process to its line `ready`, checked every 20 ms. */
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
    { what: 'start to ready, new data folder', figure: seconds(cold), bar: '≤ 3 s', beside },
    { what: 'start to ready, the same folder again', figure: seconds(warm), bar: '≤ 3 s', beside },
  ]
}

function seconds(times: readonly number[]): string {
  return `${(quantile(times, 0.5) / 1_000).toFixed(2)} s`
}
