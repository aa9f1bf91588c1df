import { expect, it } from 'vitest'
import { detectDocumentLanguage, detectLanguage } from './language.ts'

it.each([
  { text: 'مرحبا بالعالم', language: 'ar' },
  { text: 'Hello world', language: 'en' },
  { text: 'استخدام Python و R في التحليل', language: 'ar' },
  { text: 'The word العربية in a sentence', language: 'en' },
  { text: 'これは日本語の文です ok', language: null },
  { text: '12,50 — 2024', language: null },
  { text: '', language: null },
])('detects "$text" as $language', ({ text, language }) => {
  expect(detectLanguage(text)).toBe(language)
})

it('detects the language of a long document from samples of all its parts', () => {
  expect(detectDocumentLanguage('Cover page. '.repeat(50) + 'نص عربي طويل. '.repeat(20_000))).toBe('ar')
})
