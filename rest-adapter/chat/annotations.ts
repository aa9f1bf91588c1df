import type { JsonObject } from '../http/route.ts'

/** Returns the citations of an answer in the form of the chat protocol: `{type, <type>: {…}}`. */
function citedIn(annotations: unknown): readonly { readonly type: string; readonly cited: JsonObject }[] {
  if (!Array.isArray(annotations)) return []
  return (annotations as readonly (JsonObject | null)[]).flatMap((annotation) => {
    const type = annotation?.type
    const cited = typeof type === 'string' ? annotation?.[type] : undefined
    return typeof cited === 'object' && cited !== null ? { type: type as string, cited: cited as JsonObject } : []
  })
}

/** Converts citations to the form of the Responses API. A file citation has only its position. */
export function responseAnnotations(annotations: unknown): readonly JsonObject[] {
  return citedIn(annotations).map(({ type, cited }) => {
    if (type !== 'file_citation') return { type, ...cited }
    return { type, index: cited.start_index, file_id: cited.file_id, filename: cited.filename }
  })
}

/**
 * Converts citations to the form of the Messages API. Web pages are left out: the API requires fields that no vendor of
 * the chat protocol sends.
 */
export function messageCitations(annotations: unknown): readonly JsonObject[] {
  const files: unknown[] = []
  return citedIn(annotations).flatMap(({ type, cited }) => {
    if (type !== 'file_citation') return []
    const { file_id, filename, text, char_start, char_end } = cited
    if (!files.includes(file_id)) files.push(file_id)
    return {
      ...{ type: 'char_location', cited_text: text, document_index: files.indexOf(file_id), document_title: filename },
      ...{ file_id, start_char_index: char_start, end_char_index: char_end },
    }
  })
}
