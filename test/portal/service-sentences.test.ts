import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import arabic from '../../portal/web/messages/service-ar.json' with { type: 'json' }

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NAME = /\{(\w+)\}/g
const namesIn = (text: string) => [...text.matchAll(NAME)].map(([, name]) => name!)

/** All that the service can say, and more. Marks of code stand apart from the words. */
const said = globSync('{subgraphs,gateway}/**/*.ts', { cwd: ROOT, exclude: ['**/*.test.ts'] })
  .map((file) => readFileSync(`${ROOT}/${file}`, 'utf8').replace(/\\(['`])/g, '$1'))
  .join('\n')
  .replaceAll('`', '')

/** Whether the service says these words: at once, or in two parts of which one is a value. */
function isSaid(words: string): boolean {
  if (said.includes(words)) return true
  const spaces = [...words.matchAll(/ /g)].map(({ index }) => index)
  return spaces.some((space) => said.includes(words.slice(0, space)) && said.includes(words.slice(space + 1)))
}

it.each(Object.entries(arabic))('the service sends “%s”', (sentence, text) => {
  const parts = sentence
    .replaceAll('`', '')
    .split(/\{\w+\}|[.,:;] /)
    .map((part) => part.replace(/^[\s.,:;()]+|[\s.,:;()]+$/g, ''))
    .filter((part) => part !== '')
  expect(parts.filter((part) => !isSaid(part))).toEqual([])
  // Each value of the translation has a name in the sentence.
  for (const name of namesIn(text)) expect(namesIn(sentence)).toContain(name)
  expect(text).toMatch(/[\u0621-\u064a]/)
})
