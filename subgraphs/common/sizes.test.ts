import { expect, it } from 'vitest'
import { sizeText, sizeTexts } from './sizes.ts'

it.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [1023, '1023 bytes'],
  [1024, '1 KiB'],
  [1536, '1.5 KiB'],
  [2000, '2000 bytes'],
  [1024 ** 2 - 1, '1 MiB'],
  [512 * 1024 ** 2, '512 MiB'],
  [25_000_000, '23.8 MiB'],
  [10 * 1024 ** 3, '10 GiB'],
  [5000 * 1024 ** 4, '5000 TiB'],
])('writes %d bytes as %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text)
})

it('shows sizes in bytes that rounding would make the same', () => {
  expect(sizeTexts(600 * 1024 ** 2, 512 * 1024 ** 2)).toEqual(['600 MiB', '512 MiB'])
  expect(sizeTexts(40_000, 40_001)).toEqual(['40000 bytes', '40001 bytes'])
  expect(sizeTexts(2048, 2048)).toEqual(['2 KiB', '2 KiB'])
})
