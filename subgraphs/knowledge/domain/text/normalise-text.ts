/**
 * Letters of the two Arabic presentation blocks. Ligatures for a sentence, such as ﷺ, are not letters and stay. U+FEFF
 * (byte order mark) is not a letter either: `INVISIBLE` has it.
 */
const PRESENTATION_FORM = /[\ufb50-\ufdf9\ufdfc\ufdfe-\ufdff\ufe70-\ufefe]/g

/**
 * An isolated mark decomposes to a carrier (space or tatweel) and the mark. In running text, the carrier would split
 * the word.
 */
const CARRIED_MARKS = /^[ \u0640](?=\p{M}+$)/u

/** Line ends of all systems, form feeds, and the Unicode separators. */
const LINE_END = /\r\n?|[\v\f\u0085\u2028\u2029]/g

/** C0 and C1 controls except tab and line feed. */
const CONTROL = /[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/g

/**
 * Byte order marks, soft hyphens, and direction embeddings, overrides and isolates. A chunk that contains only the
 * start or the end of such a pair would reverse the text around it. Single direction marks and joiners stay, because
 * Arabic, Persian and emoji need them.
 */
const INVISIBLE = /[\u00ad\ufeff\u202a-\u202e\u2066-\u2069]/g

/** Folds only Arabic presentation forms to letters. NFKC of a whole text would turn x² into x2. */
export function foldPresentationForms(text: string): string {
  return text.replace(PRESENTATION_FORM, (form) => form.normalize('NFKC').replace(CARRIED_MARKS, '').replaceAll('\u06cc', '\u064a'))
}

/**
 * Returns the form in which document text is stored, shown and cited: NFC, Arabic presentation forms as letters, lines
 * ended by one line feed without white space before it, at most two line feeds in a row, no controls except tab and
 * line feed, no lone surrogates (they become U+FFFD), no white space around. Idempotent. Search folds its own copy
 * further.
 */
export function normaliseText(text: string): string {
  return foldPresentationForms(text.toWellFormed())
    .replace(LINE_END, '\n')
    .replace(CONTROL, '')
    .replace(INVISIBLE, '')
    .normalize('NFC')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}
