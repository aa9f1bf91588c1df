import { expect, it } from 'vitest'
import { makeCaller } from '../../support/client.ts'
import { residentBytes } from '../../support/processes/resident-bytes.ts'
import { startEmbedded } from '../../support/processes/service.ts'

/** A quarter above what is measured (docs/measurements.md). Allocators differ from machine to machine. */
const MAX_BYTES = 650 * 1024 ** 2

it.skipIf(process.platform !== 'linux')(
  'the whole service with its embedded model stays small once it has embedded',
  async () => {
    const service = await startEmbedded()
    try {
      const caller = makeCaller(service, service.key)
      const { status } = await caller.rest('POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: ['hello'] })
      expect(status).toBe(200)
      expect(residentBytes(service.processes.get('all')!.pid)).toBeLessThan(MAX_BYTES)
    } finally {
      await service.close()
    }
  },
  120_000,
)
