import { describe, expect, it } from 'vitest'
import { kindOf, type Rules, refusalOf } from './formats.ts'

const bytes = (...input: readonly (number | string)[]) =>
  new Uint8Array(input.flatMap((each) => (typeof each === 'number' ? [each] : [...new TextEncoder().encode(each)])))

describe('File format detection', () => {
  it.each([
    ['a PDF', bytes('%PDF-1.7'), 'document'],
    ['a DOCX', bytes('PK', 3, 4, 0, 0), 'document'],
    ['a DOC', bytes(0xd0, 0xcf, 0x11, 0xe0, 0), 'document'],
    ['Arabic text', bytes('سياسة التوظيف'), 'document'],
    ['UTF-16 text', bytes(0xff, 0xfe, 0x2d, 0x06, 0x41, 0), 'document'],
    ['a PNG', bytes(0x89, 'PNG', 0), 'picture'],
    ['a WebP', bytes('RIFF', 0, 0, 0, 0, 'WEBP'), 'picture'],
    ['a WAV', bytes('RIFF', 0, 0, 0, 0, 'WAVE'), 'sound'],
    ['an MP3 without a tag', bytes(0xff, 0xfb, 0x90, 0), 'sound'],
    ['an M4A', bytes(0, 0, 0, 0x20, 'ftypM4A'), 'sound'],
    ['a program', bytes('MZ', 0x90, 0), 'unknown'],
    ['an ELF program', bytes(0x7f, 'ELF', 2, 1, 1, 0), 'unknown'],
  ])('%s', (_, head, kind) => expect(kindOf(head)).toBe(kind))
})

describe('Upload checks', () => {
  const rules: Rules = { maxFileBytes: 1000, roomBytes: 5000, readsImages: false, readsAudio: false }
  const text = bytes('text')
  it.each([
    ['an empty file', 0, bytes(), rules, 'empty'],
    ['one byte above the limit', 1001, text, rules, 'tooLarge'],
    ['exactly at the limit', 1000, text, rules, null],
    ['more than is left', 900, text, { ...rules, roomBytes: 800 }, 'noRoom'],
    ['unknown limits', 10 ** 12, text, { ...rules, maxFileBytes: null, roomBytes: null }, null],
    ['a program', 10, bytes('MZ', 0), rules, 'unsupported'],
    ['an image without OCR', 10, bytes(0x89, 'PNG'), rules, 'needsOcr'],
    ['an image with OCR', 10, bytes(0x89, 'PNG'), { ...rules, readsImages: true }, null],
    ['audio without a model', 10, bytes('ID3'), rules, 'needsSpeech'],
    [
      'audio too large for models',
      26 * 1024 * 1024,
      bytes('ID3'),
      { ...rules, maxFileBytes: null, roomBytes: null, readsAudio: true },
      'soundTooLarge',
    ],
  ] as const)('%s', (_, size, head, input, refusal) => expect(refusalOf(size, head, input)).toBe(refusal))
})
