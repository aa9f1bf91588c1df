import { describe, expect, it } from 'vitest'
import { checkPlain, checkPlainLines, toPlain } from './plain-text.ts'

describe('Text on one line', () => {
  it.each([0x00, 0x09, 0x0a, 0x0d, 0x1b, 0x7f, 0x85, 0x9f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2069, 0x206f])(
    'has no invisible character %i',
    (code) => {
      const text = `photo${String.fromCodePoint(code)}gpj.exe`
      expect(() => checkPlain(text, 'name')).toThrow(expect.objectContaining({ code: 'invalid_request', param: 'name' }))
      expect(toPlain(text)).toBe('photo gpj.exe')
    },
  )

  it.each(['تقرير\u200f ٢٠٢٦.pdf', 'نامه‌ها.docx', '\u200eWhatsApp.txt', 'e\u0301té 👩‍👧.md', 'a\u061cb', 'a b'])('preserves %j', (text) => {
    checkPlain(text, 'name')
    expect(toPlain(text)).toBe(text)
  })
})

it('a text on several lines has no hidden characters except line ends', () => {
  checkPlainLines('one\r\n\ttwo', 'description')
  expect(() => checkPlainLines('one\n\u202etwo', 'description')).toThrow(expect.objectContaining({ param: 'description' }))
})
