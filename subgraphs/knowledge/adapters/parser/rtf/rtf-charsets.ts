/** Charsets of fonts by number (RTF specification, `\fcharset`). Other numbers mean the document's charset. */
const FONT_CHARSETS: Readonly<Record<number, string>> = {
  77: 'macintosh',
  128: 'shift_jis',
  129: 'euc-kr',
  134: 'gbk',
  136: 'big5',
  161: 'windows-1253',
  162: 'windows-1254',
  163: 'windows-1258',
  177: 'windows-1255',
  178: 'windows-1256',
  186: 'windows-1257',
  204: 'windows-1251',
  222: 'windows-874',
  238: 'windows-1250',
}
const CODE_PAGES: Readonly<Record<number, string>> = {
  866: 'ibm866',
  874: 'windows-874',
  932: 'shift_jis',
  936: 'gbk',
  949: 'euc-kr',
  950: 'big5',
  10000: 'macintosh',
  65001: 'utf-8',
}

/** Returns a font's charset as a label of the Encoding standard. Undefined means the document's charset. */
export function charsetOfFont(number: number | undefined): string | undefined {
  return number === undefined ? undefined : FONT_CHARSETS[number]
}

/** Returns the label of a Windows code page, or windows-1252 for an unknown one. */
export function charsetOfCodePage(number: number | undefined): string {
  if (number !== undefined && number >= 1250 && number <= 1258) return `windows-${number}`
  return (number !== undefined && CODE_PAGES[number]) || 'windows-1252'
}
