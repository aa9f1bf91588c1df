import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodeList, findInPack, ListPacker, openList, readList, unpackLists } from './posting-lists.ts'

const short = fc.array(fc.record({ distance: fc.integer({ min: 1, max: 3000 }), count: fc.integer({ min: 1, max: 300 }) }), {
  minLength: 1,
  maxLength: 40,
})
const long = fc.array(fc.record({ distance: fc.integer({ min: 1, max: 30 }), count: fc.integer({ min: 1, max: 6 }) }), {
  minLength: 4090,
  maxLength: 4110,
})

const dense = fc.array(fc.record({ distance: fc.integer({ min: 1, max: 4 }), count: fc.integer({ min: 1, max: 20 }) }), {
  minLength: 4096,
  maxLength: 4110,
})

function encoded(postings: readonly { readonly distance: number; readonly count: number }[]) {
  const places = new Uint32Array(postings.length)
  let place = -1
  for (const [i, { distance }] of postings.entries()) {
    place += distance
    places[i] = place
  }
  const counts = Uint32Array.from(postings, ({ count }) => count)
  const bytes = encodeList(places, counts, postings.length, place + 7, (_, count) => count / (count + 1)).slice()
  return { places, counts, bytes }
}

it('reads the postings that it has written, short lists, long ones and dense ones', () => {
  fc.assert(
    fc.property(fc.oneof(short, long, dense), (postings) => {
      const { places, counts, bytes } = encoded(postings)
      const list = openList(bytes)
      const read: [number, number][] = []
      readList(list, (place, count) => read.push([place, count]))
      expect(read).toEqual([...places].map((place, i) => [place, counts[i]]))
      expect(list.passages).toBe(postings.length)
      expect(list.dense !== null).toBe(postings.length > 4_095 && postings.length * 3 >= places.at(-1)! + 8)
      expect(list.highest).toBeGreaterThanOrEqual(Math.fround(Math.max(...counts) / (Math.max(...counts) + 1)))
    }),
    { numRuns: 40 },
  )
})

it('finds each list in its pack, and no other', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 300 }), (unsorted) => {
      const terms = unsorted.sort((a, b) => a - b)
      const packs: { readonly first: number; readonly pack: Uint8Array }[] = []
      const packer = new ListPacker((first, pack) => packs.push({ first, pack: pack.slice() }))
      for (const term of terms)
        packer.add(
          term,
          Uint8Array.from({ length: 1 + (term % 90) }, () => term % 256),
        )
      packer.flush()
      const unpacked = packs.flatMap(({ first, pack }) => [...unpackLists(first, pack)])
      expect(unpacked.map(({ term }) => term)).toEqual(terms)
      for (let term = 1; term < 2000; term += 7) {
        const pack = packs.findLast(({ first }) => first <= term)
        const found = pack ? findInPack(pack.first, pack.pack, term) : null
        expect(found?.length ?? 0).toBe(terms.includes(term) ? 1 + (term % 90) : 0)
      }
    }),
  )
})
