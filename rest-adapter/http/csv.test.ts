import { expect, it } from 'vitest'
import { csvLine } from './csv.ts'

it.each<[string, readonly (string | number | null)[], string]>([
  ['plain values', ['a', 1.5, -2, null, ''], 'a,1.5,-2,,\r\n'],
  ['what must be quoted', ['a,b', 'say "hi"', 'two\r\nlines'], '"a,b","say ""hi""","two\r\nlines"\r\n'],
  ['a spreadsheet formula', ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1'], "'=1+1,'+1,'-1,'@SUM(A1),'\t=1\r\n"],
  ['a formula that must be quoted', ['=HYPERLINK("a","b")'], `"'=HYPERLINK(""a"",""b"")"\r\n`],
])('a CSV line of %s', (_name, values, line) => expect(csvLine(values)).toBe(line))
