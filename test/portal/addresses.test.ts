import { expect, it } from 'vitest'
import { toReturnPath } from '../../gateway/sign-in/return-path.ts'
import { PAGES } from '../../portal/server/pages.ts'

it.each(PAGES.filter((page) => page !== 'sign-in'))('a sign-in returns to the page %s', (page) => {
  expect(toReturnPath(`/${page}`)).toBe(`/${page}`)
})
