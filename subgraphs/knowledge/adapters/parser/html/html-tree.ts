import type { DefaultTreeAdapterTypes } from 'parse5'

type Node = DefaultTreeAdapterTypes.Node
type Element = DefaultTreeAdapterTypes.Element

/** Elements that are never content of the page. */
const NOT_CONTENT = new Set(
  'head script style noscript template nav aside iframe object embed svg math canvas audio video select datalist textarea dialog'.split(
    ' ',
  ),
)
const NOT_CONTENT_ROLES = new Set(['navigation', 'search', 'banner', 'contentinfo', 'complementary', 'dialog'])
/** Classes of elements that are not printed, among them Wikipedia's menus and [edit] links. */
const NOT_CONTENT_CLASSES = new Set(['noprint', 'mw-editsection', 'navbox', 'mw-jump-link', 'mw-portlet', 'vector-dropdown'])

interface Visit {
  readonly node: Node
  readonly leaving: boolean
  /** Skips the content of the node that is being entered. The node is not visited again on leaving. */
  skip(): void
}

/**
 * Visits the tree depth first. Each element is visited on entering and on leaving. The function has its own stack,
 * because pages may nest deeper than the call stack allows.
 */
export function* walk(root: Node): Generator<Visit> {
  const stack: { node: Node; leaving: boolean }[] = [{ node: root, leaving: false }]
  for (let top = stack.pop(); top; top = stack.pop()) {
    let skipped = false
    yield {
      ...top,
      skip: () => {
        skipped = true
      },
    }
    if (top.leaving || skipped || !('childNodes' in top.node)) continue
    if (isElement(top.node)) stack.push({ node: top.node, leaving: true })
    for (let index = top.node.childNodes.length - 1; index >= 0; index -= 1)
      stack.push({ node: top.node.childNodes[index]!, leaving: false })
  }
}

export function isElement(node: Node): node is Element {
  return 'tagName' in node
}

export function* findElements(root: Node, tagName?: string): Generator<Element> {
  for (const { node, leaving } of walk(root)) {
    if (!leaving && isElement(node) && (tagName === undefined || node.tagName === tagName)) yield node
  }
}

/** Asides that are notes, as EPUB marks them (EPUB Structural Semantics). */
const NOTES = /^(?:foot|end|rear)notes?$/

export function isHidden(element: Element): boolean {
  if (NOT_CONTENT.has(element.tagName) && !isNote(element)) return true
  return element.attrs.some(({ name, value }) => {
    if (name === 'hidden') return value !== 'until-found'
    if (name === 'aria-hidden') return value === 'true'
    if (name === 'role') return NOT_CONTENT_ROLES.has(value)
    if (name === 'style') return /display\s*:\s*none|visibility\s*:\s*hidden/i.test(value)
    return name === 'class' && value.split(/\s+/).some((token) => NOT_CONTENT_CLASSES.has(token))
  })
}

function isNote({ tagName, attrs }: Element): boolean {
  return tagName === 'aside' && attrs.some(({ name, value }) => name === 'epub:type' && value.split(/\s+/).some((type) => NOTES.test(type)))
}

export function readClasses(element: Element): readonly string[] {
  return element.attrs.find(({ name }) => name === 'class')?.value.split(/\s+/) ?? []
}

/** Returns the visible text of a node on one line. */
export function readText(root: Node): string {
  const parts: string[] = []
  for (const { node, leaving, skip } of walk(root)) {
    if (isElement(node)) {
      if (!leaving && node !== root && isHidden(node)) skip()
      if (/^(?:p|div|li|br|tr|td|th|h[1-6])$/.test(node.tagName)) parts.push(' ')
    } else if (node.nodeName === '#text' && 'value' in node) parts.push(node.value)
  }
  return parts.join('').replace(/\s+/g, ' ').trim()
}
