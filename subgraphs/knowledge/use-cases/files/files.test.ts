import { expect, it } from 'vitest'
import { createContext, depsOn, ManualClock, MemoryBlobStore, principal } from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { uploadFile } from './files.ts'

/** Just above the size from which an upload needs a permit. */
const LARGE = Buffer.alloc(1_000_000, 'a').toString('base64')

/** A store in which every write waits until `open`. */
class GatedBlobs extends MemoryBlobStore {
  readonly gate = Promise.withResolvers<void>()
  override async put(...args: Parameters<MemoryBlobStore['put']>): Promise<void> {
    await this.gate.promise
    return super.put(...args)
  }
}

it('accepts every upload while another organization has many large ones in flight, and stores all of them', async () => {
  const unused = {} as never
  const blobs = new GatedBlobs()
  const deps = depsOn({ documents: new MemoryDocumentStore(), blobs, index: unused, inference: unused, clock: new ManualClock() })
  const plan = { ...principal.plan, maxFileBytes: 10_000_000, storageBytes: 1_000_000_000 }
  const upload = (organizationId: string, name: string, contentBase64: string) =>
    uploadFile(deps, createContext({ ...principal, organizationId, plan }), { name, contentBase64 })

  const many = Array.from({ length: 8 }, (_, i) => upload('org_many', `${i}.txt`, LARGE))
  const others = [upload('org_other', 'large.txt', LARGE), upload('org_other', 'small.txt', 'YQ==')]
  blobs.gate.resolve()
  expect(await Promise.all([...many, ...others].map(async (file) => (await file).name))).toEqual([
    ...many.map((_, i) => `${i}.txt`),
    'large.txt',
    'small.txt',
  ])
})

it('refuses unusable files with the list of supported formats, stores nothing of them, and accepts audio and images', async () => {
  const unused = {} as never
  const blobs = new MemoryBlobStore()
  const deps = depsOn({ documents: new MemoryDocumentStore(), blobs, index: unused, inference: unused, clock: new ManualClock() })
  const sniffing = (mediaType: string) => ({ ...deps, parser: { sniff: () => mediaType } as never })
  const upload = (mediaType: string) => uploadFile(sniffing(mediaType), createContext(principal), { name: 'a', contentBase64: 'YQ==' })
  for (const mediaType of ['application/octet-stream', 'application/gzip', 'image/gif'])
    await expect(upload(mediaType)).rejects.toMatchObject({ code: 'unsupported_file_type', message: expect.stringContaining('XLSX') })
  expect(await deps.store.files.find({}, { limit: 1 })).toEqual([])
  for (const mediaType of ['audio/wav', 'image/png', 'application/pdf', 'application/x-encrypted-office'])
    expect(await upload(mediaType)).toMatchObject({ mediaType })
})
