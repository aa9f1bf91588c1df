/**
 * Changes pdf.js's worker while it is loaded. The child imports this module before any reader, because a reader may not
 * change how modules are loaded. The original worker joins the glyphs of a line to a string and reverses right-to-left
 * runs. This breaks glyphs of several letters, such as lam-alef. The changed worker returns the glyphs from left to
 * right, and the names of the fonts. It also tells gaps that the file fills with a space from gaps that it only leaves.
 */
import { registerHooks } from 'node:module'

/** Stands for a gap without a space: a word gap, or wide kerning. */
export const BARE_GAP = '\u200a'

const CHANGES = [
  [
    'const bidiResult = bidi(text, -1, textChunk.vertical);',
    'const bidiResult = { str: text, dir: "ltr", glyphs: textChunk.str.slice() };',
  ],
  ['str: bidiResult.str,', 'str: bidiResult.str, glyphs: bidiResult.glyphs,'],
  // Split the pieces of a line at gaps wider than a word gap, so that cells can be told apart.
  ['const SPACE_IN_FLOW_MAX_FACTOR = 0.6;', 'const SPACE_IN_FLOW_MAX_FACTOR = 0.35;'],
  [
    'if (textContentItem.initialized) {\n          resetLastChars();\n          textContentItem.str.push(" ");',
    `if (textContentItem.initialized) {\n          const gap = shouldAddWhitepsace() ? " " : "${BARE_GAP}";\n          resetLastChars();\n          textContentItem.str.push(gap);`,
  ],
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
