import { Fragment, type ReactNode, useState } from 'react'
import type { QueryResult } from '../data/query-result.ts'
import { useText } from '../i18n/text.tsx'
import { classes } from '../ui/classes.ts'
import { Pagination } from '../ui/pagination.tsx'
import { Table, Td, Th } from '../ui/table.tsx'
import { useIsNarrow } from '../ui/wide.ts'
import { ErrorState, Loading } from './states.tsx'

const PAGE_SIZE = 20

/** A page of a connection, as Relay has them. */
interface Page<Row> {
  readonly edges: readonly { readonly node: Row | null }[]
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null }
}

/** What a list shows whose object is not there. */
export const EMPTY_PAGE: Page<never> = { edges: [], pageInfo: { hasNextPage: false, endCursor: null } }

/** Where a reader of a list is. Spread `variables` into those of the query. */
interface Paging {
  readonly variables: { readonly first: number; readonly after: string | null }
  readonly older: (endCursor: string) => void
  readonly newer: (() => void) | null
}

/** Pages of a list by cursor. `key`: the filters; the list begins anew when they change. */
export function usePaging(key = '', size = PAGE_SIZE): Paging {
  const [{ of, cursors }, set] = useState<{ of: string; cursors: readonly string[] }>({ of: key, cursors: [] })
  const current = of === key ? cursors : []
  return {
    variables: { first: size, after: current.at(-1) ?? null },
    older: (endCursor) => set({ of: key, cursors: [...current, endCursor] }),
    newer: current.length === 0 ? null : () => set({ of: key, cursors: current.slice(0, -1) }),
  }
}

export interface Column<Row> {
  readonly id: string
  readonly header: ReactNode
  readonly cell: (row: Row) => ReactNode
  /** Numbers and amounts stand at the end. */
  readonly isNumber?: boolean
  /** `wide`: only where there is room for it. A card has it, too. */
  readonly shown?: 'always' | 'wide'
  readonly className?: string
}

interface DataTableProps<Data, Row> {
  readonly label: string
  readonly result: QueryResult<Data>
  readonly page: (data: Data) => Page<Row>
  readonly paging: Paging
  readonly columns: readonly Column<Row>[]
  readonly rowId: (row: Row) => string
  /** What shows if the list has nothing. */
  readonly empty: ReactNode
}

/** A list of the service, page by page, with its states. The first column names the row. */
export function DataTable<Data, Row>({ label, result, page, paging, columns, rowId, empty }: DataTableProps<Data, Row>) {
  if (result.state === 'loading') return <Loading lines={6} />
  if (result.state === 'failed') return <ErrorState failure={result.failure} retry={result.retry} />
  const { edges, pageInfo } = page(result.data)
  const rows = edges.flatMap(({ node }) => (node ? [node] : []))
  if (rows.length === 0 && !paging.newer && !pageInfo.hasNextPage) return empty
  return (
    <>
      <RowsTable {...{ label, columns, rows, rowId }} isBusy={result.isRefreshing} />
      <Pagination
        isBusy={result.isRefreshing}
        onNewer={paging.newer}
        onOlder={pageInfo.hasNextPage && pageInfo.endCursor ? () => paging.older(pageInfo.endCursor!) : null}
      />
    </>
  )
}

interface RowsTableProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowId: (row: Row) => string
  readonly isBusy?: boolean
  /**
   * The name of a row, and the columns that it stands for. With it each row is a card where the screen is narrow, so that
   * a table of many figures need not scroll sideways.
   */
  readonly card?: { readonly name: (row: Row) => ReactNode; readonly replaces: readonly string[] }
}

/** Rows that are all here. */
export function RowsTable<Row>({ card, ...props }: RowsTableProps<Row>) {
  const isNarrow = useIsNarrow()
  return card && isNarrow ? <Cards {...props} card={card} /> : <WholeTable {...props} />
}

function Cards<Row>({ label, columns, rows, rowId, isBusy, card }: RowsTableProps<Row> & Required<Pick<RowsTableProps<Row>, 'card'>>) {
  const facts = columns.filter(({ id, header }) => header && !card.replaces.includes(id))
  const actions = columns.filter(({ header }) => !header)
  return (
    <ul aria-label={label} aria-busy={isBusy} className="flex flex-col gap-2">
      {rows.map((row) => (
        <li key={rowId(row)} className="rounded-xl border bg-surface px-4 py-3 text-sm">
          <div className="flex items-start justify-between gap-3">
            <div className="min-w-0 font-medium">{card.name(row)}</div>
            {actions.map(({ id, cell }) => (
              <Fragment key={id}>{cell(row)}</Fragment>
            ))}
          </div>
          <dl className="grid grid-cols-[repeat(auto-fit,minmax(5.25rem,1fr))] gap-x-3">
            {facts.map(({ id, header, cell }) => (
              <div key={id} className="row-span-2 grid min-w-0 grid-rows-subgrid gap-y-0">
                <dt className="mt-2 text-xs text-muted">{header}</dt>
                <dd className="tabular-nums">{cell(row)}</dd>
              </div>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  )
}

function WholeTable<Row>({ label, columns, rows, rowId, isBusy }: Omit<RowsTableProps<Row>, 'card'>) {
  const text = useText()
  const cellClasses = ({ isNumber, shown, className }: Column<Row>) =>
    classes(isNumber && 'text-end tabular-nums', shown === 'wide' && 'max-md:hidden', className)
  return (
    <Table label={label} aria-busy={isBusy}>
      <caption className="sr-only">{label}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <Th key={column.id} className={cellClasses(column)}>
              {column.header || <span className="sr-only">{text('common.actions')}</span>}
            </Th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={rowId(row)} className="hover:bg-hover/50">
            {columns.map((column) => (
              <Td key={column.id} className={cellClasses(column)}>
                {column.cell(row)}
              </Td>
            ))}
          </tr>
        ))}
      </tbody>
    </Table>
  )
}
