import { expect, it } from 'vitest'
import { readExcerpts } from './sources.ts'

for (const { name, message, expected } of [
  {
    name: 'reads numbered search results',
    message: '[1] leave.pdf, page 3: Leave is 21 days.\n[2] pay.docx: Pay day is the 27th.',
    expected: [
      { text: 'Leave is 21 days.', source: '[1] leave.pdf, page 3' },
      { text: 'Pay day is the 27th.', source: '[2] pay.docx' },
    ],
  },
  {
    name: 'reads a source above its text, across paragraphs',
    message: 'Context:\n[1] دليل.pdf، صفحة 4\nالنص الأول.\n\nالنص الثاني.',
    expected: [
      { text: '\nالنص الأول.', source: '[1] دليل.pdf، صفحة 4' },
      { text: 'النص الثاني.', source: '[1] دليل.pdf، صفحة 4' },
    ],
  },
  {
    name: 'reads `Source:` above a text and below one',
    message: 'Source: a.txt\nFirst text.\n\nالمصدر: b.txt\nنص ثان.',
    expected: [
      { text: '\nFirst text.', source: 'a.txt' },
      { text: '\nنص ثان.', source: 'b.txt' },
    ],
  },
  {
    name: 'reads `Source:` below a text',
    message: 'Some text.\nSource: c.md, p. 2',
    expected: [{ text: 'Some text.', source: 'c.md, p. 2' }],
  },
  { name: 'accepts a bare number as a source', message: '[7] Just a text.', expected: [{ text: 'Just a text.', source: '[7]' }] },
  {
    name: 'leaves text without sources unchanged',
    message: 'One.\n\n[Note] Two: three.',
    expected: [
      { text: 'One.', source: null },
      { text: '[Note] Two: three.', source: null },
    ],
  },
  {
    name: "reads this service's search results",
    message: JSON.stringify({
      object: 'list',
      data: [
        { text: 'A.', score: 0.9, page_start: 2, page_end: 2, file: { id: 'file_1', file_name: 'a.pdf' } },
        { text: 'B.', page_start: 3, page_end: 5, file: { file_name: 'b.pdf' } },
        { text: 'C.', page_start: null, source: 'c.txt' },
      ],
    }),
    expected: [
      { text: 'A.', source: 'a.pdf, p. 2' },
      { text: 'B.', source: 'b.pdf, pp. 3–5' },
      { text: 'C.', source: 'c.txt' },
    ],
  },
  {
    name: "reads a tool's plain facts",
    message: '{"city":"Riyadh","celsius":41}',
    expected: [{ text: 'city: Riyadh, celsius: 41', source: null }],
  },
  { name: 'reads broken JSON as text', message: '{"text": "A.', expected: [{ text: '{"text": "A.', source: null }] },
  { name: 'reads an empty text', message: '  \n\n ', expected: [] },
]) {
  it(name, () => expect(readExcerpts(message)).toEqual(expected))
}
