import { expect, it } from 'vitest'
import { HOME, toReturnPath } from './return-path.ts'

it.each(['/home', '/collections/col_1?tab=files', '/agents#new', '/docs', '/sign-in/organization?next=%2Fhome'])(
  'a sign-in returns to %s',
  (path) => {
    expect(toReturnPath(path)).toBe(path)
  },
)

it.each([
  [undefined],
  [['/home']],
  [''],
  ['home'],
  ['//evil.example/home'],
  ['/\\evil.example/home'],
  ['\\\\evil.example'],
  ['/\t/evil.example'],
  ['https://evil.example/home'],
  ['javascript:alert(1)'],
  ['/session/oidc'],
  ['/v1/keys'],
  ['/homes'],
  ['/sign-in'],
  ['/sign-in/organization/x'],
  ['/home/../session/oidc'],
  ['/home/\u202E'],
  [`/home?${'a'.repeat(2_000)}`],
])('a sign-in does not return to %j', (returnPath) => {
  expect(toReturnPath(returnPath)).toBe(HOME)
})
