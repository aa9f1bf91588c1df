import { describe, expect, it } from 'vitest'
import { moneyFormat, type Rounding } from './money-format.ts'

const CONTROLS = /[\u200e\u200f\u061c\u2066-\u2069]/g
const write = (locale: string, amount: string, rounding: Rounding) =>
  moneyFormat(locale)(amount, rounding).replace(CONTROLS, '').replaceAll('\u00a0', ' ')

describe('Money in the portal', () => {
  it.each([
    ['99.997', '$99.99', '$100.00', '$99.997'],
    ['100', '$100.00', '$100.00', '$100.00'],
    ['0.01', '$0.01', '$0.01', '$0.01'],
    ['0.0149', '$0.01', '$0.02', '$0.0149'],
    ['0.009999', '$0.0099', '$0.0100', '$0.009999'],
    ['0.000000001', '$0.0000', '$0.0001', '$0.000000001'],
    ['0', '$0.00', '$0.00', '$0.00'],
    ['-0.0031', '-$0.0031', '-$0.0031', '-$0.0031'],
    ['-1.231', '-$1.24', '-$1.23', '-$1.231'],
    ['123456789012345678.999999999', '$123,456,789,012,345,678.99', '$123,456,789,012,345,679.00', '$123,456,789,012,345,678.999999999'],
  ])('shows %s as %s if it is available, as %s if it is spent, and exactly as %s', (amount, down, up, exact) => {
    expect((['down', 'up', 'exact'] as const).map((rounding) => write('en', amount, rounding))).toEqual([down, up, exact])
  })

  it('is shown the same way in Arabic, with digits of either script', () => {
    expect(write('ar-u-nu-latn', '99.997', 'down')).toContain('99.99')
    expect(write('ar-u-nu-arab', '99.997', 'down')).toContain('٩٩٫٩٩')
    expect(write('ar-u-nu-arab', '0.00166', 'up')).toContain('٠٫٠٠١٧')
    expect(write('ar-u-nu-arab', '99.997', 'exact')).toContain('٩٩٫٩٩٧')
  })
})
