/**
 * Imported by the child before any reader, because a reader may not change how modules are loaded. pdf.js's worker
 * joins the glyphs of a line into a string and turns right-to-left runs of it round, and a glyph of several letters, as
 * lam-alef, with them. With these changes it gives the glyphs, as they stand from left to right, and the names of the
 * fonts.
 */
import { registerHooks } from 'node:module'

const CHANGES = [
  [
    'const bidiResult = bidi(text, -1, textChunk.vertical);',
    'const bidiResult = { str: text, dir: "ltr", glyphs: textChunk.str.slice() };',
  ],
  ['str: bidiResult.str,', 'str: bidiResult.str, glyphs: bidiResult.glyphs,'],
  // Gaps wider than between words part the pieces of a line, so that cells can be told from one another.
  ['const SPACE_IN_FLOW_MAX_FACTOR = 0.6;', 'const SPACE_IN_FLOW_MAX_FACTOR = 0.35;'],
  ['fontFamily: font.fallbackName,', 'fontFamily: font.fallbackName, name: font.name,'],
] as const

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    return url.endsWith('/pdfjs-dist/legacy/build/pdf.worker.mjs') ? { ...loaded, source: changed(String(loaded.source)) } : loaded
  },
})

function changed(source: string): string {
  return CHANGES.reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`pdf.js's worker has changed: "${from}" is not in it once`)
    return text.replace(from, to)
  }, source)
}
