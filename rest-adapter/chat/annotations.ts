import type { JsonObject } from '../http/route.ts'

/** What an answer cites, as the chat protocol has it: `{type, <type>: {…}}`. */
function citedIn(annotations: unknown): readonly { readonly type: string; readonly cited: JsonObject }[] {
  if (!Array.isArray(annotations)) return []
  return (annotations as readonly (JsonObject | null)[]).flatMap((annotation) => {
    const type = annotation?.type
    const cited = typeof type === 'string' ? annotation?.[type] : undefined
    return typeof cited === 'object' && cited !== null ? { type: type as string, cited: cited as JsonObject } : []
  })
}

/** As the Responses API has them, which tells of a file where its citation stands, and no more. */
export function responseAnnotations(annotations: unknown): readonly JsonObject[] {
  return citedIn(annotations).map(({ type, cited }) => {
    if (type !== 'file_citation') return { type, ...cited }
    return { type, index: cited.start_index, file_id: cited.file_id, filename: cited.filename }
  })
}

/** As the Messages API has them. Of web pages it wants what no vendor of the chat protocol tells; those are left out. */
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
