import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BlobStore } from '../../subgraphs/knowledge/ports/blob-store.ts'

export interface OpenBlobStore {
  readonly store: BlobStore
  /** Closes it and opens what it kept; absent where that cannot be done. */
  readonly reopen?: () => Promise<BlobStore>
  readonly close: () => Promise<void>
}

const MIB = 1024 * 1024

/** What every adapter of the blob-store port does. */
export function blobStoreContract(name: string, open: () => Promise<OpenBlobStore>): void {
  describe(`Blob store: ${name}`, () => {
    let opened: OpenBlobStore
    let created = 0
    const newKey = () => `org_1/file_${++created}`
    // Bytes of large blobs are compared by their hash: a difference of megabytes says nothing in a report.
    const sha256 = (bytes: Uint8Array | null) => bytes && createHash('sha256').update(bytes).digest('hex')

    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened.close())

    for (const size of [0, 1, 256 * 1024, 256 * 1024 + 1, 3 * MIB + 7]) {
      it(`round-trips ${size} bytes`, async () => {
        const key = newKey()
        const bytes = randomBytes(size)
        await opened.store.put(key, bytes)
        const got = await opened.store.get(key)
        expect(got).toBeInstanceOf(Uint8Array)
        expect(got).toHaveLength(size)
        expect(sha256(got)).toBe(sha256(bytes))
      })
    }

    it('returns 25 MiB, whole and in parts of 1 MiB', async () => {
      const key = newKey()
      const bytes = randomBytes(25 * MIB)
      await opened.store.put(key, bytes)
      expect(sha256(await opened.store.get(key))).toBe(sha256(bytes))
      const hash = createHash('sha256')
      for (let offset = 0; ; offset += MIB) {
        const piece = await opened.store.get(key, { offset, length: MIB })
        if (piece?.length === 0) break
        hash.update(piece!)
      }
      expect(hash.digest('hex')).toBe(sha256(bytes))
    })

    it('returns any range', async () => {
      const key = newKey()
      const bytes = randomBytes(MIB)
      await opened.store.put(key, bytes)
      for (const [offset, length] of [
        [0, 1],
        [0, MIB],
        [5, 10],
        [256 * 1024 - 1, 2],
        [256 * 1024, 256 * 1024],
        [255 * 1024, 512 * 1024],
        [MIB - 3, 100],
        [MIB - 3, 32 * MIB],
        [MIB, 5],
        [9 * MIB, 5],
        [7, 0],
      ] as const) {
        const got = await opened.store.get(key, { offset, length })
        expect(got?.length).toBe(Math.max(0, Math.min(length, MIB - offset)))
        expect(sha256(got)).toBe(sha256(bytes.subarray(offset, offset + length)))
      }
    })

    it('knows no key that was not put', async () => {
      expect(await opened.store.get(newKey())).toBeNull()
      expect(await opened.store.get(newKey(), { offset: 0, length: 1 })).toBeNull()
    })

    it("copies a view of a larger buffer, which stays the caller's", async () => {
      const key = newKey()
      const buffer = randomBytes(10_000)
      const view = buffer.subarray(100, 200)
      await opened.store.put(key, view)
      expect(sha256(await opened.store.get(key))).toBe(sha256(view))
      expect(buffer).toHaveLength(10_000)
    })

    it('replaces bytes by fewer, and accepts unusual keys', async () => {
      const key = `${newKey()}/ملف "quoted" %_'`
      await opened.store.put(key, randomBytes(MIB))
      await opened.store.put(key, new Uint8Array([1, 2, 3]))
      expect(await opened.store.get(key)).toEqual(new Uint8Array([1, 2, 3]))
      expect(await opened.store.get(key, { offset: 1, length: 9 })).toEqual(new Uint8Array([2, 3]))
    })

    it('shows readers the old bytes or the new, never a mixture', async () => {
      const key = newKey()
      const createVersion = (version: number) => new Uint8Array(MIB + version * 1_000).fill(version)
      await opened.store.put(key, createVersion(0))
      let isDone = false
      const writing = (async () => {
        for (let version = 1; version <= 10; version++) await opened.store.put(key, createVersion(version))
        isDone = true
      })()
      while (!isDone) {
        const bytes = (await opened.store.get(key))!
        const version = bytes[0]!
        expect(sha256(bytes)).toBe(sha256(createVersion(version)))
      }
      await writing
      expect(sha256(await opened.store.get(key))).toBe(sha256(createVersion(10)))
    })

    it('deletes, repeatedly', async () => {
      const [key, other] = [newKey(), newKey()]
      await opened.store.put(key, randomBytes(MIB))
      await opened.store.put(other, new Uint8Array([1]))
      await opened.store.delete(key)
      await opened.store.delete(key)
      expect(await opened.store.get(key)).toBeNull()
      expect(await opened.store.get(other)).toEqual(new Uint8Array([1]))
      await opened.store.put(key, new Uint8Array([2]))
      expect(await opened.store.get(key)).toEqual(new Uint8Array([2]))
    })

    it('lists its blobs with their sizes, page by page, without deleted ones', async () => {
      const prefix = `list_${++created}/`
      const names = ['a', 'b', 'c', 'd', 'ملف'].map((name) => prefix + name)
      for (const [i, key] of names.toReversed().entries()) await opened.store.put(key, new Uint8Array(i))
      await opened.store.put(names[1]!, new Uint8Array(9))
      await opened.store.delete(names[2]!)
      const listed: (readonly [string, number])[] = []
      for (let after = prefix; ; ) {
        const page = await opened.store.list(after, 2)
        listed.push(
          ...page.filter(({ key }) => key.startsWith(prefix)).map(({ key, sizeBytes }) => [key.slice(prefix.length), sizeBytes] as const),
        )
        if (page.length < 2) break
        after = page.at(-1)!.key
      }
      expect(listed).toEqual([['a', 4], ['b', 9], ['d', 1], ['ملف', 0]]) // biome-ignore format: a table
    })

    it('preserves everything when it is closed and reopened', async ({ skip }) => {
      const mine = await open()
      if (!mine.reopen) {
        await mine.close()
        skip('this adapter keeps nothing in a test')
        return
      }
      const bytes = randomBytes(MIB)
      await mine.store.put('kept', bytes)
      expect(sha256(await (await mine.reopen()).get('kept'))).toBe(sha256(bytes))
      await mine.close()
    })
  })
}
