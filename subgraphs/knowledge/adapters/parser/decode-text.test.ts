import { expect, it } from 'vitest'
import { decodeText, looksBinary } from './decode-text.ts'

const ARABIC = 'ذهب الطالب إلى المكتبة العامة، واستعار كتابًا عن تاريخ العلوم عند العرب.\r\n١٢٣ سطر ثانٍ؟'
const FRENCH = 'Les élèves ont été très étonnés : « où est passée la forêt ? » — c’était là-bas, à côté.'
const GERMAN = 'Größe und Übung: Ärger über süße Äpfel, weiß-gelbe Öfen, straße.'
const PORTUGUESE = 'Não há pães nem maçãs; as questões são então avaliações de ações e coração.'

/** Encodes a text in an 8-bit code page by reversing the decoder's table. */
function encode(text: string, charset: string): Uint8Array {
  const decoder = new TextDecoder(charset)
  const bytes = new Map(Array.from({ length: 256 }, (_, byte) => [decoder.decode(Uint8Array.of(byte)), byte]))
  return Uint8Array.from(text, (char) => bytes.get(char) ?? 0x3f)
}

function utf16(text: string, order: 'le' | 'be', mark: boolean): Uint8Array {
  const bytes = Buffer.from(mark ? `\ufeff${text}` : text, 'utf16le')
  return order === 'le' ? bytes : bytes.swap16()
}

it.each([
  { name: 'UTF-8', bytes: Buffer.from(ARABIC), charset: 'utf-8', text: ARABIC },
  { name: 'UTF-8 with a byte order mark', bytes: Buffer.from(`\ufeff${ARABIC}`), charset: 'utf-8', text: ARABIC },
  { name: 'ASCII', bytes: Buffer.from('plain words'), charset: 'utf-8', text: 'plain words' },
  { name: 'Arabic UTF-16LE with a byte order mark', bytes: utf16(ARABIC, 'le', true), charset: 'utf-16le', text: ARABIC },
  { name: 'Arabic UTF-16BE with a byte order mark', bytes: utf16(ARABIC, 'be', true), charset: 'utf-16be', text: ARABIC },
  { name: 'Arabic UTF-16LE', bytes: utf16(ARABIC, 'le', false), charset: 'utf-16le', text: ARABIC },
  { name: 'Arabic UTF-16BE', bytes: utf16(ARABIC, 'be', false), charset: 'utf-16be', text: ARABIC },
  { name: 'French UTF-16LE', bytes: utf16(FRENCH, 'le', false), charset: 'utf-16le', text: FRENCH },
  { name: 'French UTF-16BE', bytes: utf16(FRENCH, 'be', false), charset: 'utf-16be', text: FRENCH },
  {
    name: 'Arabic windows-1256',
    bytes: encode(ARABIC.replaceAll(/[١٢٣]/g, '1'), 'windows-1256'),
    charset: 'windows-1256',
    text: ARABIC.replaceAll(/[١٢٣]/g, '1'),
  },
  {
    name: 'an Arabic word in English windows-1256',
    bytes: encode('The word مدرسة means school.', 'windows-1256'),
    charset: 'windows-1256',
    text: 'The word مدرسة means school.',
  },
  { name: 'French windows-1252', bytes: encode(FRENCH, 'windows-1252'), charset: 'windows-1252', text: FRENCH },
  { name: 'German windows-1252', bytes: encode(GERMAN, 'windows-1252'), charset: 'windows-1252', text: GERMAN },
  { name: 'Portuguese windows-1252', bytes: encode(PORTUGUESE, 'windows-1252'), charset: 'windows-1252', text: PORTUGUESE },
  {
    name: 'only curly quotes of windows-1252',
    bytes: encode('“smart” quotes', 'windows-1252'),
    charset: 'windows-1252',
    text: '“smart” quotes',
  },
])('reads $name', ({ bytes, charset, text }) => {
  expect(decodeText(bytes)).toEqual({ text, charset, replaced: 0 })
})

it('decodes corrupted UTF-8 as UTF-8 and counts the replacements', () => {
  const bytes = Buffer.concat([Buffer.from(ARABIC), Buffer.from([0xff]), Buffer.from(ARABIC)])
  expect(decodeText(bytes)).toEqual({ text: `${ARABIC}\ufffd${ARABIC}`, charset: 'utf-8', replaced: 1 })
})

it('trusts a declared charset only for bytes that are not UTF-8', () => {
  expect(decodeText(encode('привет', 'windows-1251'), 'windows-1251').text).toBe('привет')
  expect(decodeText(Buffer.from('привет'), 'windows-1251').text).toBe('привет')
  expect(decodeText(encode(FRENCH, 'windows-1252'), 'no-such-charset').text).toBe(FRENCH)
})

it('distinguishes text from binary', () => {
  expect(looksBinary(Buffer.from(ARABIC))).toBe(false)
  expect(looksBinary(utf16(FRENCH, 'be', false))).toBe(false)
  expect(looksBinary(encode(FRENCH, 'windows-1252'))).toBe(false)
  expect(looksBinary(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]))).toBe(true)
  expect(looksBinary(Buffer.from(Array.from({ length: 400 }, (_, index) => index % 32)))).toBe(true)
})

it.each([
  ['a law', 'المادة الثالثة: تسري أحكام هذا القانون على جميع العاملين في الدولة، ولا يجوز الاتفاق على ما يخالفها.'],
  ['a few words', 'كشف الرواتب والأجور'],
])('distinguishes ISO-8859-6 and MacArabic from windows-1256: %s', (_what, text) => {
  for (const charset of ['windows-1256', 'iso-8859-6']) expect(decodeText(encode(text, charset))).toEqual({ text, charset, replaced: 0 })
  // MacArabic has the letters of ISO-8859-6, and its own digits and signs: here ١٢, a space and an exclamation mark.
  const mac = Buffer.concat([encode(text, 'iso-8859-6'), Buffer.from([0xa0, 0xb1, 0xb2, 0xa1])])
  expect(decodeText(mac)).toEqual({ text: `${text} ١٢!`, charset: 'x-mac-arabic', replaced: 0 })
})
