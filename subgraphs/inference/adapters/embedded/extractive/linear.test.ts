import { expect, it } from 'vitest'
import { findCandidates } from './candidates.ts'
import { readConversation } from './conversation.ts'
import { splitWords } from './engine.ts'
import { findSupport } from './support.ts'

/** The longest text that the model reads. */
const LENGTH = 256_000
/** Computing time. A quadratic reader takes minutes, a linear one tenths of a second. */
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
    ' | ',
    'a | b\n',
    '[#1] a: ',
    '[#1] a: b\n\n',
    'what ',
    'bye ',
  ],
])('reads a conversation of %j in linear time', async (pump) => {
  const content = `${pump.repeat(LENGTH / pump.length).slice(0, LENGTH - 10)}x\n\nWhat?`
  const begun = process.cpuUsage()
  const { context } = readConversation({
    messages: [
      { role: 'system', content: '' },
      { role: 'user', content },
    ],
  })
  const candidates = findCandidates(context)
  const vector = Float32Array.of(1)
  const calibration = { arabicAnchor: vector, englishAnchor: vector, midpoint: 0, slope: 1 }
  await findSupport({ question: content, earlier: content }, candidates, calibration, async (texts) => texts.map(() => vector))
  splitWords(content)
  splitWords(content.replaceAll('x\n\nWhat?', ''))
  expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(MAX_MS)
})

it('splits text into words with their leading space, without trailing space', () => {
  expect(splitWords(' a  b\n')).toEqual([' a', '  b'])
  expect(splitWords(' \n')).toEqual([])
})
