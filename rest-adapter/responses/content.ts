import { isAbsent, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'

/** A part of the chat protocol, and its path in the caller's request. */
export interface Part {
  readonly part: JsonObject
  readonly path: string
}

/** More parts than any message has. */
const MAX_PARTS = 2_048

/** Parts of this API that no engine accepts, and what to do instead. */
const ELSEWHERE = new Map([
  ['input_file', 'Send its text as `input_text`; or upload it by POST /v1/files, attach it to a collection and search that.'],
  ['input_audio', 'Send the result of POST /v1/audio/transcriptions.'],
])

/**
 * @param acceptsImages whether a message of this kind may contain images
 * @throws {KisError} `invalid_request`, with a path such as `input[0].content[1].image_url`
 */
export function toParts(value: unknown, path: string, acceptsImages: boolean): readonly Part[] {
  if (typeof value === 'string') return [{ part: { type: 'text', text: value }, path }]
  if (!isAbsent(value) && !Array.isArray(value)) refuse('invalid_type', path, `'${path}' must be a string or an array of content parts.`)
  return listAt(value, path, 1, MAX_PARTS).map((each, index) => toPart(each, `${path}[${index}]`, acceptsImages))
}

/** A single text becomes a string, which every engine accepts; anything else stays a list. */
export function toContent(parts: readonly Part[]): string | readonly JsonObject[] {
  const [first, ...others] = parts
  return first && others.length === 0 && first.part.type === 'text' ? (first.part.text as string) : parts.map(({ part }) => part)
}

function toPart(value: unknown, path: string, acceptsImages: boolean): Part {
  const item = objectAt(value, path)
  const type = textAt(item.type, `${path}.type`)
  switch (type) {
    case 'input_text':
    case 'output_text':
      return { part: { type: 'text', text: textAt(item.text, `${path}.text`) }, path }
    case 'refusal':
      return { part: { type: 'refusal', refusal: textAt(item.refusal, `${path}.refusal`) }, path }
    case 'input_image':
      if (!acceptsImages)
        refuse('unsupported_value', `${path}.type`, 'Images are only accepted in messages of the user and in outputs of functions.')
      return { part: toImagePart(item, path), path }
    default:
      return refuse(
        'unsupported_value',
        `${path}.type`,
        `Content of the type '${type}' is not accepted. ${ELSEWHERE.get(type) ?? "Types: 'input_text', 'input_image', 'output_text', 'refusal'."}`,
      )
  }
}

function toImagePart({ image_url: url, file_id: fileId, detail }: JsonObject, path: string): JsonObject {
  if (!isAbsent(fileId) && isAbsent(url)) {
    refuse('unsupported_value', `${path}.file_id`, 'Images are not accepted by file id. Send `image_url`, a public address or a data: URI.')
  }
  return { type: 'image_url', image_url: { url: textAt(url, `${path}.image_url`), ...(!isAbsent(detail) && { detail }) } }
}
