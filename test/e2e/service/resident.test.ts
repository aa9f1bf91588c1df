import { expect, it } from 'vitest'
import { createCaller } from '../../support/client.ts'
import { residentBytes } from '../../support/processes/resident-bytes.ts'
import { startEmbedded } from '../../support/processes/service.ts'

/**
 * Above what is measured (docs/measurements.md), because the garbage of loading may not be collected yet. Allocators
 * differ from machine to machine.
 */
const MAX_READY_BYTES = 340 * 1024 ** 2
const MAX_EMBEDDED_BYTES = 500e6

it.skipIf(process.platform !== 'linux')(
  'the whole service uses little memory at its start, and after its embedded model has embedded',
  async () => {
    const service = await startEmbedded()
    const resident = () => residentBytes(service.processes.get('all')!.pid)
    try {
      expect(resident()).toBeLessThan(MAX_READY_BYTES)
      const caller = createCaller(service, service.key)
      const { status } = await caller.rest('POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: ['hello'] })
      expect(status).toBe(200)
      expect(resident()).toBeLessThan(MAX_EMBEDDED_BYTES)
    } finally {
      await service.close()
    }
  },
  120_000,
)
