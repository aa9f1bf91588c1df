import type { ParserLimits } from '../limits.ts'
import { listChildren, readXmlTree, textIn, type XmlElement } from '../xml/xml.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { type Field, toLines } from './record-lines.ts'

/**
 * Reads XML of any vocabulary. An element whose children contain only text is a record: a paragraph of `name: value`
 * lines. An element with its own text is a paragraph. All other elements are read recursively.
 */
export async function readXmlFile(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  read(await readXmlTree([bytes], limits), builder)
}

function read(element: XmlElement, builder: DocumentBuilder): void {
  const children = listChildren(element)
  const own = listAttributes(element)
  if (children.length === 0 || hasText(element)) {
    const text = textIn(element).replace(/[ \t]+/g, ' ')
    builder.add('paragraph', toLines([...own, [own.length > 0 ? element.name : '', text]]))
    return
  }
  let fields: Field[] = [...own]
  const flush = () => {
    builder.add('paragraph', toLines(fields))
    fields = []
  }
  for (const child of children) {
    if (listChildren(child).length === 0) {
      const text = textIn(child).trim()
      // An element with attributes only is also a record.
      for (const [name, value] of listAttributes(child)) fields.push([`${child.name}.${name}`, value])
      fields.push([child.name, text])
    } else {
      flush()
      read(child, builder)
    }
  }
  flush()
}

function listAttributes({ attributes }: XmlElement): readonly Field[] {
  return Object.entries(attributes).filter(([name]) => !/^xmlns\b|^xsi:|^xml:/.test(name))
}

/** Reports whether an element has text beside its child elements. */
function hasText({ children }: XmlElement): boolean {
  return children.some((child) => typeof child === 'string' && child.trim() !== '')
}
