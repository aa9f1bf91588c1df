import { checkOneOf, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
const MAX_TEXTS = 4_096

/** The hint for blocks without a counterpart in the chat protocol. */
export const ACCEPTED_BLOCKS = 'Send text, images, thinking, tool calls and their results, and documents as text.'

/** An image as a content part of the chat protocol. */
export function toImagePart({ source }: JsonObject, path: string): JsonObject {
  const { type, media_type, data, url } = objectAt(source, `${path}.source`)
  switch (textAt(type, `${path}.source.type`)) {
    case 'url':
      return { type: 'image_url', image_url: { url: textAt(url, `${path}.source.url`) } }
    case 'base64':
      checkOneOf(textAt(media_type, `${path}.source.media_type`), `${path}.source.media_type`, IMAGE_TYPES)
      return { type: 'image_url', image_url: { url: `data:${media_type};base64,${textAt(data, `${path}.source.data`)}` } }
    default:
      return refuse('unsupported_value', `${path}.source.type`, "An image is sent with a source of the type 'base64' or 'url'.")
  }
}

/** The texts of a string, or of a list of blocks that contain only text: text, search results, text documents. */
export function readTexts(content: unknown, path: string): readonly string[] {
  if (typeof content === 'string') return content === '' ? [] : [content]
  return listAt(content, path, 0, MAX_TEXTS).map((block, index) => readText(objectAt(block, `${path}[${index}]`), `${path}[${index}]`))
}

/** @throws {KisError} `invalid_request`: the block contains something other than text */
export function readText(block: JsonObject, path: string): string {
  switch (textAt(block.type, `${path}.type`)) {
    case 'text':
      return textAt(block.text, `${path}.text`)
    case 'search_result':
      return searchResultText(block, path)
    case 'document':
      return documentText(block, path)
    default:
      return refuse('unsupported_value', `${path}.type`, `Blocks of the type '${block.type}' cannot be sent here. ${ACCEPTED_BLOCKS}`)
  }
}

function searchResultText({ title, source, content }: JsonObject, path: string): string {
  const head = [textAt(title, `${path}.title`), textAt(source, `${path}.source`)]
  return [...head, ...readTexts(content, `${path}.content`)].join('\n')
}

function documentText({ title, context, source }: JsonObject, path: string): string {
  const { type, data, content } = objectAt(source, `${path}.source`)
  const head = [title, context].filter((text) => typeof text === 'string' && text !== '')
  if (textAt(type, `${path}.source.type`) === 'text') return [...head, textAt(data, `${path}.source.data`)].join('\n')
  if (type === 'content' && typeof content === 'string') return [...head, content].join('\n')
  return refuse(
    'unsupported_value',
    `${path}.source.type`,
    'A document is sent as text: with a source of the type `text`, or of the type `content`. Upload files to a collection and search there.',
  )
}
