import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { RULES } from '../../vitest.config.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CHANGE =
  /\bvi\.(?:doMock|hoisted|mock|setSystemTime|stubEnv|stubGlobal|useFakeTimers)\b|\bprocess\.(?:chdir|env\.\w+ =|on\(|once\()|\bglobalThis\.\w+ =/

it('no test file that shares its process changes global state', () => {
  const files = RULES.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).filter((file) => !file.endsWith('.slow.test.ts'))
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter((file) => CHANGE.test(readFileSync(`${ROOT}/${file}`, 'utf8')))).toEqual([])
})
