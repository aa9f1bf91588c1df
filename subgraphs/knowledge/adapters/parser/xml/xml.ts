import { SaxesParser } from 'saxes'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'

/** An XML element with its content. Names have no prefix, because producers choose prefixes freely. */
export interface XmlElement {
  readonly name: string
  /** The attributes by their full names, including prefixes; see `findAttribute`. */
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly (XmlElement | string)[]
}

interface OpenElement extends XmlElement {
  readonly children: (XmlElement | string)[]
}

interface ReadOptions {
  /**
   * Names of the elements to return. Each is returned whole when it ends, and then released. A unit inside another unit
   * is only a part of it. Without `units`, the root is returned.
   */
  readonly units?: ReadonlySet<string>
  /** Names of elements to omit, with their content. */
  readonly without?: ReadonlySet<string>
}

/** Maximum nesting depth. Word documents have some dozens of levels. Readers recurse into each level. */
const MAX_DEPTH = 400

const NO_ATTRIBUTES: Readonly<Record<string, string>> = Object.freeze(Object.create(null))

/** XML errors that browsers and Office tolerate. saxes continues after them. */
const FORGIVEN = /undefined entity|disallowed character\.|text data outside of root node/

/**
 * Reads XML and passes the requested elements to `onElement`. The largest of them determines the memory. Only XML's own
 * entities are expanded, and nothing is fetched.
 * @throws {ParseFailure} `corrupt` if the XML is not well-formed.
 * @throws {ParseFailure} `limit_exceeded` if it is nested too deeply, or one element contains too many.
 */
export async function readXml(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limits: ParserLimits,
  onElement: (element: XmlElement) => void,
  { units, without }: ReadOptions = {},
): Promise<void> {
  const parser = new SaxesParser()
  const open: OpenElement[] = []
  let depth = 0
  let leftOutAt = 0
  let elements = 0
  parser.on('error', (error) => {
    if (!FORGIVEN.test(error.message)) throw new ParseFailure('corrupt', 'The document cannot be read: its XML is corrupted.')
  })
  parser.on('opentag', ({ name, attributes }) => {
    depth += 1
    if (depth > MAX_DEPTH) throw new ParseFailure('limit_exceeded', `The document has elements more than ${MAX_DEPTH} levels deep.`)
    const local = localName(name)
    if (leftOutAt === 0 && without?.has(local)) leftOutAt = depth
    if (leftOutAt > 0 || (open.length === 0 && units && !units.has(local))) return
    if (open.length === 0) elements = 0
    elements += 1
    if (elements > limits.maxXmlElements)
      throw new ParseFailure('limit_exceeded', `The document has more than ${limits.maxXmlElements} XML elements in one part.`)
    open.push({ name: local, attributes: Object.keys(attributes).length > 0 ? attributes : NO_ATTRIBUTES, children: [] })
  })
  const addText = (text: string) => {
    if (leftOutAt === 0) open.at(-1)?.children.push(text)
  }
  parser.on('text', addText)
  parser.on('cdata', addText)
  parser.on('closetag', () => {
    depth -= 1
    if (leftOutAt > 0) {
      if (depth < leftOutAt) leftOutAt = 0
      return
    }
    const element = open.pop()
    if (!element) return
    const parent = open.at(-1)
    if (parent) parent.children.push(element)
    else onElement(element)
  })
  let decoder: InstanceType<typeof TextDecoder> | undefined
  for await (const piece of pieces) {
    decoder ??= new TextDecoder(readCharset(piece))
    parser.write(decoder.decode(piece, { stream: true }))
  }
  parser.write(decoder?.decode() ?? '').close()
}

/**
 * Reads the root element with its content.
 * @throws {ParseFailure} like `readXml`, and `corrupt` if there is no root.
 */
export async function readXmlTree(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limits: ParserLimits,
  options: Pick<ReadOptions, 'without'> = {},
): Promise<XmlElement> {
  let root: XmlElement | undefined
  await readXml(pieces, limits, (element) => (root ??= element), options)
  if (!root) throw new ParseFailure('corrupt', 'The document cannot be read: its XML is empty.')
  return root
}

/** Returns an attribute by its name without prefix. An attribute written without a prefix takes precedence. */
export function findAttribute({ attributes }: XmlElement, name: string): string | undefined {
  const own = attributes[name]
  if (own !== undefined) return own
  for (const key in attributes) if (key.endsWith(name) && key[key.length - name.length - 1] === ':') return attributes[key]
  return undefined
}

export function listChildren(element: XmlElement): readonly XmlElement[] {
  return element.children.filter((child): child is XmlElement => typeof child !== 'string')
}

export function findChild(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((child): child is XmlElement => typeof child !== 'string' && child.name === name)
}

/** Yields the descendants with a name, in document order. Does not search inside the yielded elements. */
export function* listDescendants(element: XmlElement, name: string): Generator<XmlElement> {
  for (const child of element.children) {
    if (typeof child === 'string') continue
    if (child.name === name) yield child
    else yield* listDescendants(child, name)
  }
}

/** Returns all text in an element, unchanged. */
export function textIn(element: XmlElement | undefined): string {
  if (!element) return ''
  return element.children.map((child) => (typeof child === 'string' ? child : textIn(child))).join('')
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** Returns the charset that XML declares at its start (XML 1.0, appendix F). */
function readCharset(head: Uint8Array): string {
  const [first, second] = head
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return 'utf-16le'
  if ((first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c)) return 'utf-16be'
  const declared = /^\s*(?:\u00ef\u00bb\u00bf)?<\?xml[^>]{0,200}encoding\s*=\s*["']([\w-]{1,40})/.exec(
    Buffer.from(head.subarray(0, 300)).toString('latin1'),
  )?.[1]
  // Bytes that reach this point are not UTF-16, even if the declaration says so.
  if (!declared || /^utf-?16/i.test(declared)) return 'utf-8'
  try {
    return new TextDecoder(declared).encoding
  } catch {
    return 'utf-8'
  }
}
