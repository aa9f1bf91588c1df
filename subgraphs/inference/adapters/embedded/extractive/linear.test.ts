import { expect, it } from 'vitest'
import { splitWords } from './answer.ts'
import { readConversation } from './conversation.ts'
import { splitSentences } from './sentences.ts'

/** The longest text that the model reads. */
const LENGTH = 256_000
/** Of computing time. A quadratic reader takes minutes, a linear one tenths of a second. */
const MAX_MS = 3_000

it.each([
  ...[
    'No. ',
    'a. ',
    ' ',
    '\n',
    '\t',
    '\n\n',
    '[1] a:  ',
    '[1]\t',
    '\t:\t',
    'a.pdf: ',
    'source: ',
    'Dr. ',
    'سور. ',
    '{"a":',
    '[',
    '؟',
    'a',
    ' \u2028',
  ],
])('reads a conversation of %j in linear time', (pump) => {
  const content = `${pump.repeat(LENGTH / pump.length).slice(0, LENGTH - 10)}x\n\nWhat?`
  const begun = process.cpuUsage()
  const { context } = readConversation({
    messages: [
      { role: 'system', content: '' },
      { role: 'user', content },
    ],
  })
  for (const { text } of context) splitSentences(text)
  splitWords(content)
  splitWords(content.replaceAll('x\n\nWhat?', ''))
  expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(MAX_MS)
})

it('gives words with the space before them, and no space after the last', () => {
  expect(splitWords(' a  b\n')).toEqual([' a', '  b'])
  expect(splitWords(' \n')).toEqual([])
})
