import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const SOURCE = fileURLToPath(new URL('../../portal/web/src', import.meta.url))
/** Utilities that name a side of the screen. Their logical twins (`ms-`, `pe-`, `start-`, `text-end`) turn round in Arabic. */
const PHYSICAL =
  /(?<![\w-])-?(?:(?:ml|mr|pl|pr|scroll-ml|scroll-mr|scroll-pl|scroll-pr)-[\w[(]|(?:left|right)-(?:\d|\[|px|full|auto|1\/)|(?:text|float|clear)-(?:left|right)\b|(?:border|rounded)-(?:[lr]|[tb][lr])(?![a-z]))/
/** The same in CSS. */
const PHYSICAL_CSS = /(?<![\w-])(?:(?:margin|padding|border)-(?:left|right)|left|right)\s*:|text-align:\s*(?:left|right)/

it('no style of the portal names left or right', () => {
  const found = globSync('**/*.{ts,tsx,css}', { cwd: SOURCE }).flatMap((file) =>
    readFileSync(`${SOURCE}/${file}`, 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        (file.endsWith('.css') ? PHYSICAL_CSS : PHYSICAL).test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [],
      ),
  )
  expect(found).toEqual([])
})
