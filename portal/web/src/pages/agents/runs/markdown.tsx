import { lexer, type Token, type Tokens } from 'marked'
import { Fragment, type ReactNode } from 'react'

interface MarkdownProps {
  readonly source: string
  /** Writes the mark of a citation: 1 for `[#1]`. */
  readonly mark: (number: number) => ReactNode
}

const MARK = /\[#(\d{1,9})\]/
/** Each part finds its direction by its own first letter. */
const OWN_DIRECTION = '[unicode-bidi:plaintext] text-start'

/**
 * Writes what a model said. Nothing of it becomes HTML, a picture or a link: only paragraphs, lists, tables, code and
 * emphasis. HTML shows as it was written, and links with their addresses.
 */
export function Markdown({ source, mark }: MarkdownProps) {
  return <div className="flex flex-col gap-3">{blocks(lexer(source, { gfm: true, breaks: true }), mark)}</div>
}

type Mark = MarkdownProps['mark']

function blocks(tokens: readonly Token[], mark: Mark): ReactNode {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of a text keep their places.
    <Fragment key={index}>{block(token, mark)}</Fragment>
  ))
}

function block(token: Token, mark: Mark): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'hr':
      return <hr />
    case 'heading':
      return (
        <p dir="auto" className="font-semibold wrap-anywhere">
          {inline(token.tokens ?? [], mark)}
        </p>
      )
    case 'code':
      return (
        <section
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
          tabIndex={0}
          className="overflow-x-auto rounded-lg border bg-sunken p-3"
        >
          <pre dir="ltr" className="font-mono text-xs">
            {token.text}
          </pre>
        </section>
      )
    case 'blockquote':
      return (
        <blockquote dir="auto" className="flex flex-col gap-2 border-s-2 ps-3 text-muted">
          {blocks(token.tokens ?? [], mark)}
        </blockquote>
      )
    case 'list':
      return <List list={token as Tokens.List} mark={mark} />
    case 'table':
      return <TableOf table={token as Tokens.Table} mark={mark} />
    case 'paragraph':
      return (
        <p dir="auto" className="wrap-anywhere">
          {inline(token.tokens ?? [], mark)}
        </p>
      )
    default:
      return (
        <p dir="auto" className="wrap-anywhere whitespace-pre-wrap">
          {'tokens' in token && token.tokens ? inline(token.tokens, mark) : withMarks(token.raw, mark)}
        </p>
      )
  }
}

function List({ list, mark }: { readonly list: Tokens.List; readonly mark: Mark }) {
  const items = list.items.map((item, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the items of a text keep their places.
    <li key={index} className={`wrap-anywhere ${OWN_DIRECTION}`}>
      {item.tokens.map((token, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: as above.
        <Fragment key={place}>
          {token.type === 'text' ? inline('tokens' in token && token.tokens ? token.tokens : [token], mark) : block(token, mark)}
        </Fragment>
      ))}
    </li>
  ))
  if (!list.ordered) {
    return (
      <ul dir="auto" className="flex list-disc flex-col gap-1 ps-5">
        {items}
      </ul>
    )
  }
  return (
    <ol dir="auto" start={list.start === '' ? undefined : list.start} className="flex list-decimal flex-col gap-1 ps-6">
      {items}
    </ol>
  )
}

function TableOf({ table, mark }: { readonly table: Tokens.Table; readonly mark: Mark }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: 'th' | 'td') =>
    row.map((cell, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the cells of a text keep their places.
      <Cell key={index} className={`border px-2.5 py-1.5 align-top ${OWN_DIRECTION}`}>
        {inline(cell.tokens, mark)}
      </Cell>
    ))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
    <div dir="auto" tabIndex={0} className="overflow-x-auto">
      <table className="border-collapse text-sm">
        <thead className="bg-sunken">
          <tr>{cells(table.header, 'th')}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a text keep their places.
            <tr key={index}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inline(tokens: readonly Token[], mark: Mark): ReactNode {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of a text keep their places.
    <Fragment key={index}>{piece(token, mark)}</Fragment>
  ))
}

function piece(token: Token, mark: Mark): ReactNode {
  const inner = () => inline(('tokens' in token && token.tokens) || [], mark)
  switch (token.type) {
    case 'strong':
      return <strong className="font-semibold">{inner()}</strong>
    case 'em':
      return <em>{inner()}</em>
    case 'del':
      return <del>{inner()}</del>
    case 'br':
      return <br />
    case 'codespan':
      return (
        <code dir="ltr" className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.9em] wrap-anywhere">
          {token.text}
        </code>
      )
    case 'link':
      return token.text === token.href ? (
        <bdi>{token.href}</bdi>
      ) : (
        <>
          {inner()} (<bdi dir="ltr">{token.href}</bdi>)
        </>
      )
    case 'image':
      return token.text
    case 'escape':
      return token.text
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ '
    case 'text':
      return 'tokens' in token && token.tokens ? inner() : withMarks(unescaped(token.raw), mark)
    default:
      return withMarks(token.raw, mark)
  }
}

/** A text with its marks of citations in their places. */
function withMarks(text: string, mark: Mark): ReactNode {
  // Each second part is the number of a mark.
  return text.split(MARK).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text keep their places.
    <Fragment key={index}>{index % 2 === 1 ? mark(Number(part)) : part}</Fragment>
  ))
}

const ENTITIES: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

function unescaped(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]!)
}
