import type { ReactElement, ReactNode } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'

interface MarkdownProps {
  readonly source: string
  /** Renders the mark of a citation: 1 for `[#1]`. */
  readonly mark: (number: number) => ReactNode
}

/** The part of a Markdown node that `remarkPlain` reads. */
interface Node {
  type: string
  value?: string
  children?: Node[]
  data?: { hName: string }
}

const MARK_OR_BREAK = /(\n)|\[#(\d{1,9})\]/
/** Parents of blocks. All others hold text. */
const BLOCKS = new Set(['root', 'blockquote', 'list', 'listItem', 'footnoteDefinition', 'table', 'tableRow'])
/** Each part takes its direction from its own first letter. */
const OWN_DIRECTION = '[unicode-bidi:plaintext] text-start'

/**
 * Renders a model's text. Nothing in it becomes HTML, an image or a link: only paragraphs, lists, tables, code and
 * emphasis. HTML shows as it was written, and links with their addresses.
 */
export function Markdown({ source, mark }: MarkdownProps) {
  return (
    <div className="flex flex-col gap-3">
      <ReactMarkdown
        remarkPlugins={[remarkGfm, remarkPlain]}
        // Footnotes get a line above them: the library's heading is English.
        remarkRehypeOptions={{ footnoteLabelTagName: 'hr' }}
        // An address is shown as text.
        urlTransform={(url) => url}
        components={{ ...COMPONENTS, cite: ({ children }) => mark(Number(children)) }}
      >
        {source}
      </ReactMarkdown>
    </div>
  )
}

const Heading: Components['h1'] = ({ children }) => (
  <p dir="auto" className="font-semibold wrap-anywhere">
    {children}
  </p>
)

const COMPONENTS: Components = {
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  hr: () => <hr />,
  p: ({ children }) => (
    <p dir="auto" className="wrap-anywhere">
      {children}
    </p>
  ),
  pre: ({ children }) => (
    <section
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
      tabIndex={0}
      className="overflow-x-auto rounded-lg border bg-sunken p-3"
    >
      <pre dir="ltr" className="font-mono text-xs">
        {(children as ReactElement<{ readonly children: string }>).props.children}
      </pre>
    </section>
  ),
  code: ({ children }) => (
    <code dir="ltr" className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.9em] wrap-anywhere">
      {children}
    </code>
  ),
  blockquote: ({ children }) => (
    <blockquote dir="auto" className="flex flex-col gap-2 border-s-2 ps-3 text-muted">
      {children}
    </blockquote>
  ),
  ul: ({ children }) => (
    <ul dir="auto" className="flex list-disc flex-col gap-1 ps-5">
      {children}
    </ul>
  ),
  ol: ({ children, start }) => (
    <ol dir="auto" start={start} className="flex list-decimal flex-col gap-1 ps-6">
      {children}
    </ol>
  ),
  li: ({ children }) => <li className={`wrap-anywhere ${OWN_DIRECTION}`}>{children}</li>,
  input: ({ checked }) => (checked ? '☑' : '☐'),
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
    <div dir="auto" tabIndex={0} className="overflow-x-auto">
      <table className="border-collapse text-sm">{children}</table>
    </div>
  ),
  thead: ({ children }) => <thead className="bg-sunken">{children}</thead>,
  th: ({ children }) => <th className={`border px-2.5 py-1.5 align-top ${OWN_DIRECTION}`}>{children}</th>,
  td: ({ children }) => <td className={`border px-2.5 py-1.5 align-top ${OWN_DIRECTION}`}>{children}</td>,
  strong: ({ children }) => <strong className="font-semibold">{children}</strong>,
  img: ({ alt }) => alt,
  a: ({ children, href = '' }) => {
    if (href.startsWith('#user-content-fn-')) return children
    if (href.startsWith('#user-content-fnref-')) return null
    const address = asWritten(href)
    return children === address ? (
      <bdi>{address}</bdi>
    ) : (
      <>
        {children} (<bdi dir="ltr">{address}</bdi>)
      </>
    )
  },
}

/** A plugin of remark: HTML becomes text, and text gets its line breaks and its citation marks, as `<cite>`. */
function remarkPlain() {
  return function rewrite(parent: Node): void {
    parent.children = parent.children?.flatMap((child): Node[] => {
      rewrite(child)
      if (child.type !== 'text' && child.type !== 'html') return [child]
      const pieces = split(child.value!)
      return BLOCKS.has(parent.type) ? [{ type: 'paragraph', children: pieces }] : pieces
    })
  }
}

function split(text: string): Node[] {
  // Of each three parts, the second is a line break and the third the number of a mark.
  return text.split(MARK_OR_BREAK).flatMap((value, index): Node[] => {
    if (!value) return []
    if (index % 3 === 1) return [{ type: 'break' }]
    const written: Node = { type: 'text', value }
    return [index % 3 === 2 ? { type: 'mark', data: { hName: 'cite' }, children: [written] } : written]
  })
}

/** Decodes an address, which the library encodes. */
function asWritten(href: string): string {
  try {
    return decodeURI(href)
  } catch {
    return href
  }
}
