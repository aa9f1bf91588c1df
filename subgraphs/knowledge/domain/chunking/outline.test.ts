import { expect, it } from 'vitest'
import { buildDigest } from '../digest.ts'
import { buildOutline } from './outline.ts'

/** Creates blocks from lines such as `2 heading` or `paragraph`. The text of a block is the whole line. */
function parsed(...lines: readonly string[]) {
  let text = ''
  const blocks = lines.map((line) => {
    const [, level, words] = /^(\d) (.*)$/s.exec(line) ?? [null, null, line]
    const charStart = text.length
    text += `${words}\n\n`
    const range = { charStart, charEnd: charStart + words!.length }
    return level ? { kind: 'heading' as const, level: Number(level), ...range } : { kind: 'paragraph' as const, ...range }
  })
  return { text, blocks }
}

it('uses the first heading as the title, and the outermost of the others, in order', () => {
  const inner = Array.from({ length: 9 }, (_, i) => `3 Inner ${i}`)
  expect(buildOutline(parsed('1 دليل الموظف', '2 Leave', ...inner, '2 Leave', '2 Remote\nwork', 'words', '1 Annex'))).toEqual({
    title: 'دليل الموظف',
    headings: ['Leave', 'Inner 0', 'Inner 1', 'Inner 2', 'Inner 3', 'Inner 4', 'Remote work', 'Annex'],
  })
})

it('finds no title where the text begins without one, and truncates long ones', () => {
  expect(buildOutline(parsed('words', '1 Later'))).toEqual({ title: null, headings: ['Later'] })
  expect(buildOutline(parsed('words'))).toEqual({ title: null, headings: [] })
  expect(buildOutline(parsed(`1 ${'long '.repeat(50)}`)).title!.length).toBeLessThanOrEqual(80)
})

it('digests the longest documents first, with one heading of each before the second of any', () => {
  const document = (fileName: string, chunkCount: number, language: string | null, headings: string[]) => ({
    ...{ fileName, chunkCount, language, outline: { title: `T ${fileName}`, headings }, createdAt: new Date(chunkCount) },
  })
  const { outline: _, ...old } = document('old.txt', 1, null, [])
  const digest = buildDigest(
    [document('a', 2, 'ar', ['A1', 'A2']), document('b', 5, 'en', ['B1', 'A1', 'B3']), document('c', 3, 'en', []), old],
    9,
    new Date(0),
  )
  expect(digest).toEqual({
    documentCount: 9,
    examinedCount: 4,
    languages: [
      { language: 'en', documentCount: 2 },
      { language: 'ar', documentCount: 1 },
      { language: null, documentCount: 1 },
    ],
    titles: [
      { title: 'T b', fileName: 'b' },
      { title: 'T c', fileName: 'c' },
      { title: 'T a', fileName: 'a' },
      { title: null, fileName: 'old.txt' },
    ],
    headings: ['B1', 'A1', 'A2', 'B3'],
    oldestAt: new Date(0),
    newestAt: new Date(2),
  })
  expect(buildDigest([], 0, null)).toMatchObject({ documentCount: 0, languages: [], titles: [], headings: [], newestAt: null })
})
