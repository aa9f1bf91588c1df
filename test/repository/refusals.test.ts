import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The refusals of overload. */
const REFUSAL = /(?:new KisError|super)\(\s*'(?:rate_limit_exceeded|service_unavailable)'/g
/** A refusal with its detail is shorter. */
const LONGEST = 600

it('every overload error has a retry delay, or says that a retry does not help', () => {
  const files = globSync('{gateway,rest-adapter,subgraphs}/**/*.ts', { cwd: ROOT, exclude: (name) => name.endsWith('.test.ts') })
  let seen = 0
  const silent: string[] = []
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    for (const { index } of text.matchAll(REFUSAL)) {
      seen++
      if (!/retryAfterMs|shouldRetry: false/.test(callAt(text, index))) silent.push(`${file}:${text.slice(0, index).split('\n').length}`)
    }
  }
  expect(silent).toEqual([])
  expect(seen).toBeGreaterThan(20)
})

/** The call that begins here, to its closing parenthesis. */
function callAt(text: string, start: number): string {
  let depth = 0
  for (let i = text.indexOf('(', start); i < start + LONGEST; i++) {
    if (text[i] === '(') depth++
    if (text[i] === ')' && --depth === 0) return text.slice(start, i)
  }
  return text.slice(start, start + LONGEST)
}
