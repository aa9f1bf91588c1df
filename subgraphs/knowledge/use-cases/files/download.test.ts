import { buffer } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { createContext, depsOn, ManualClock, MemoryBlobStore, principal } from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { byteRequest } from '../../../common/bytes/byte-response.ts'
import { openDownload, signDownload } from './download.ts'
import { deleteFile, uploadFile } from './files.ts'

const context = createContext()
const MIB = 1024 * 1024

async function uploaded(sizeBytes: number) {
  const unused = {} as never
  const blobs = new MemoryBlobStore()
  const deps = depsOn({ documents: new MemoryDocumentStore(), blobs, index: unused, inference: unused, clock: new ManualClock() })
  const plan = { ...principal.plan, maxFileBytes: 10 * MIB, storageBytes: 100 * MIB }
  const bytes = Buffer.alloc(sizeBytes, 'abcdefg')
  const input = { name: 'a.txt', contentBase64: bytes.toString('base64') }
  const file = await uploadFile(deps, createContext({ ...principal, plan }), input)
  const open = (path: string, range?: string) =>
    openDownload(deps, context, byteRequest(path, { method: 'GET', headers: range ? { range } : {} }))
  return { deps, blobs, bytes, file, open }
}

it('streams the bytes of the file for a signed path', async () => {
  const { deps, bytes, file, open } = await uploaded(2 * MIB + 5)
  const { path } = await signDownload(deps, context, file._id)
  const { status, headers, body } = await open(path)
  expect([status, headers['content-length'], headers['content-type']]).toEqual([200, String(bytes.length), 'text/plain'])
  expect((await buffer(body)).equals(bytes)).toBe(true)
  const part = await open(path, `bytes=${MIB - 1}-${2 * MIB}`)
  expect((await buffer(part.body)).equals(bytes.subarray(MIB - 1, 2 * MIB + 1))).toBe(true)
})

it('signs no path to the file of another organization, nor without the scope', async () => {
  const { deps, file, open } = await uploaded(5)
  const otherContext = createContext({ ...principal, organizationId: 'org_2' })
  await expect(signDownload(deps, otherContext, file._id)).rejects.toMatchObject({ code: 'not_found' })
  const { path } = await deps.bytePaths.sign({ kind: 'file', organizationId: 'org_2', key: file._id })
  await expect(open(path)).rejects.toMatchObject({ code: 'not_found' })
  const writer = createContext({ ...principal, scopes: ['knowledge:write'] })
  await expect(signDownload(deps, writer, file._id)).rejects.toMatchObject({ code: 'permission_denied' })
})

it('reports that a file was deleted after its path was signed', async () => {
  const { deps, file, open } = await uploaded(5)
  const { path } = await signDownload(deps, context, file._id)
  await deleteFile(deps, context, file._id)
  await expect(open(path)).rejects.toMatchObject({ code: 'not_found' })
})

it('fails for a file that is shorter than its record, immediately or when its bytes end', async () => {
  const { deps, blobs, bytes, file, open } = await uploaded(2 * MIB)
  const { path } = await signDownload(deps, context, file._id)
  const { key } = (await blobs.list('', 1))[0]!
  await blobs.put(key, bytes.subarray(0, MIB + 10))
  await expect(buffer((await open(path)).body)).rejects.toThrow('missing')
  await blobs.delete(key)
  await expect(open(path)).rejects.toThrow('missing')
})

it('reads no more of the store than its reader has consumed', async () => {
  const { deps, blobs, file, open } = await uploaded(8 * MIB)
  const { path } = await signDownload(deps, context, file._id)
  let reads = 0
  const get = blobs.get.bind(blobs)
  blobs.get = (...args) => {
    reads++
    return get(...args)
  }
  const { body } = await open(path)
  for await (const _piece of body) {
    expect(reads).toBeLessThanOrEqual(3)
    break
  }
  expect(body.destroyed).toBe(true)
})
