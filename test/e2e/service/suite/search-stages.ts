import { beforeAll, describe, expect, it } from 'vitest'
import { addDocument, type Caller, type Json, newCollection } from '../../../support/client.ts'
import type { Running } from './running.ts'

const FILLER = 'The harbour master keeps a register of ships, pilots and berths, and the register is read once a year.'
const LONG = `# Harbours\n\n${['The harbour of Sur was built in 1931.', ...Array(12).fill(FILLER), 'The lighthouse burns oil.'].map((text, i) => `## Part ${i}\n\n${`${text} `.repeat(18)}`).join('\n\n')}`

/** What a search can be asked for beyond its hits, over two collections. */
export function searchStages(running: Running): void {
  describe('search stages', () => {
    let caller: Caller
    let ports: Json
    let rules: Json
    beforeAll(async () => {
      caller = await running.newOrganization()
      ;[ports, rules] = [await newCollection(caller), await newCollection(caller)]
      await Promise.all([
        addDocument(caller, ports.id, 'harbours.md', LONG, { town: 'Sur', القسم: 'موانئ' }),
        addDocument(caller, ports.id, 'ميناء.md', 'بني ميناء صور سنة 1931، وفيه منارة من النحاس.', { town: 'Sur', القسم: 'آثار' }),
        addDocument(caller, rules.id, 'permits.md', 'The permit HB-2291/7 allows night fishing in the harbour. Call +968 24 123 456.', {
          town: 'Muscat',
        }),
        addDocument(caller, rules.id, 'fines.md', 'A fine is due when a boat fishes at night in the harbour without a permit.', {
          town: 'Muscat',
        }),
      ])
    }, 120_000)

    const search = async (query: string, more: Record<string, unknown> = {}) => {
      const { status, body } = await caller.rest('POST', '/v1/search', { collection_ids: [ports.id, rules.id], query, ...more })
      expect(status, JSON.stringify(body)).toBe(200)
      return body
    }
    const names = ({ data }: Json): string[] => data.map(({ file }: Json) => file.file_name)

    it('ranks several collections as one, and omits hits below the minimum score', async () => {
      const { data } = await search('fishing at night in the harbour')
      expect(new Set(data.map(({ collection_id }: Json) => collection_id))).toEqual(new Set([ports.id, rules.id]))
      const scores: number[] = data.map(({ score }: Json) => score)
      expect(scores).toEqual(scores.toSorted((a, b) => b - a))
      const few = await search('fishing at night in the harbour', { min_score: scores[1] })
      expect(few.data).toHaveLength(2)
    })

    it('returns the neighbors of a hit, and highlights the words of the query', async () => {
      const { data } = await search('lighthouse oil', { expand: 2, limit: 1, mode: 'lexical' })
      const [{ text, before, after, highlights, heading_path }] = data
      expect(heading_path.at(-1)).toMatch(/^Part/)
      expect(before.length + after.length).toBeGreaterThan(0)
      const marked = new Set(highlights.map(({ start, end }: Json) => text.slice(start, end)))
      expect([...marked].every((word) => ['lighthouse', 'oil'].includes(word as string)) && marked.size > 0).toBe(true)
    })

    it('groups by document, and counts the values of fields', async () => {
      const { data, groups, facets } = await search('harbour', {
        group_by: 'document',
        hits_per_document: 2,
        limit: 3,
        facets: ['metadata.town', 'language', 'metadata.القسم'],
      })
      expect(groups).toHaveLength(3)
      expect(groups.every((group: Json) => group.chunk_ids.length <= 2)).toBe(true)
      expect(data).toHaveLength(groups.flatMap((group: Json) => group.chunk_ids).length)
      const valuesOf = (field: string) =>
        new Map(facets.find((facet: Json) => facet.field === field).values.map(({ value, documents }: Json) => [value, documents]))
      expect(valuesOf('metadata.town')).toEqual(
        new Map([
          ['Sur', 2],
          ['Muscat', 2],
        ]),
      )
      expect(valuesOf('language')).toEqual(
        new Map([
          ['en', 3],
          ['ar', 1],
        ]),
      )
      expect(valuesOf('metadata.القسم')).toEqual(
        new Map([
          ['موانئ', 1],
          ['آثار', 1],
        ]),
      )
    })

    it('filters by substrings, in any script', async () => {
      expect(new Set(names(await search('harbour', { filter: { op: 'contains', field: 'file_name', value: 'PERM' } })))).toEqual(
        new Set(['permits.md']),
      )
      const filter = { op: 'contains', field: 'metadata.القسم', value: 'ثار' }
      expect(names(await search('harbour', { filter }))).toEqual(['ميناء.md'])
    })

    it('boosts exact terms, and requires quoted phrases', async () => {
      for (const query of ['HB-2291/7', '٩٦٨٢٤١٢٣٤٥٦', 'what does hb 2291/7 allow'])
        expect(names(await search(query))[0], query).toBe('permits.md')
      expect(new Set(names(await search('"night in the harbour"')))).toEqual(new Set(['fines.md']))
      expect((await search('"night in the desert"')).data).toEqual([])
    })
  })
}
