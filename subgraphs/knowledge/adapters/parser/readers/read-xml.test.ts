import { expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../limits.ts'
import { DocumentBuilder } from './document-builder.ts'
import { readXmlFile } from './read-xml.ts'

it('reads an element with any number of attributes', async () => {
  const builder = new DocumentBuilder(DEFAULT_LIMITS)
  const attributes = Array.from({ length: 150_000 }, (_, i) => `a${i}="${i}"`)
  await readXmlFile(Buffer.from(`<all><one ${attributes.join(' ')}>text</one></all>`), builder, DEFAULT_LIMITS)
  const lines = builder.build('application/xml').text.split('\n')
  expect(lines).toHaveLength(attributes.length + 1)
  expect([lines[0], lines.at(-1)]).toEqual(['one.a0: 0', 'one: text'])
})
