import { expect, it } from 'vitest'
import type { Library } from './library.ts'

/** Search over the library, and answers from what it finds. */
export function search(library: Library): void {
  it.each([
    ['Arabic in Arabic', 'كم يوماً الإجازة السنوية؟', 'ثلاثون يوماً'],
    ['English in English', 'Which class may I book for a long flight?', 'business class'],
    ['English by an Arabic question', 'كم دولاراً يُعوَّض عن الوجبات في اليوم؟', '60 dollars'],
    ['Arabic by an English question', 'How many days a week may I work from home?', 'يومين في الأسبوع'],
  ])('finds %s', async (_, query, expected) => {
    const { search } = library
    const [first] = await search(query)
    expect(first.text).toContain(expected)
    expect(first).toMatchObject({ object: 'search_result', vector_rank: expect.any(Number), page_start: null, page_end: null })
  })

  it('returns the source of each chunk: file, heading path, offsets and both ranks', async () => {
    const { search } = library
    const [first] = await search('economy class flights', { limit: 1 })
    expect(first).toMatchObject({
      file: { file_name: 'travel.md', id: expect.stringMatching(/^file_/) },
      heading_path: ['Travel policy'],
      lexical_rank: 1,
      document_id: expect.stringMatching(/^doc_/),
    })
    expect(first.char_end - first.char_start).toBe(first.text.length)
  })

  it('applies mode, limit and filter', async () => {
    const { search } = library
    expect(await search('dollars', { limit: 1 })).toHaveLength(1)
    expect((await search('dollars', { mode: 'lexical' })).map((hit) => hit.vector_rank)).toEqual([null])
    expect((await search('dollars', { mode: 'vector' })).every((hit) => hit.lexical_rank === null)).toBe(true)
    const files = (await search('work policy', { filter: { 'metadata.department': 'hr' } })).map((hit) => hit.file.file_name)
    expect(new Set(files)).toEqual(new Set(['دليل.md']))
  })

  it('answers from the chunks by the official SDK, without any vendor', async () => {
    const { caller, search } = library
    const hits = await search('كم دولاراً يُعوَّض عن الوجبات في اليوم؟', { limit: 3 })
    const context = hits.map((hit, i) => `[${i + 1}] ${hit.file.file_name}: ${hit.text}`).join('\n\n')
    const completion = await caller.openai.chat.completions.create({
      model: 'extractive',
      messages: [{ role: 'user', content: `${context}\n\nكم دولاراً يُعوَّض عن الوجبات في اليوم؟` }],
    })
    expect(completion.choices[0]!.message.content).toContain('60 dollars')
    const pieces: string[] = []
    const stream = await caller.openai.chat.completions.create({
      model: 'extractive',
      stream: true,
      messages: [{ role: 'user', content: `${context}\n\nHow soon must receipts be handed in?` }],
    })
    for await (const chunk of stream) pieces.push(chunk.choices[0]?.delta.content ?? '')
    expect(pieces.length).toBeGreaterThan(2)
    expect(pieces.join('')).toContain('thirty days')
  })
}
