import { getRouteApi, Link } from '@tanstack/react-router'
import { Ellipsis, LibraryBig, Pencil, Plus, SearchX, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useScope } from '../../app/session.tsx'
import { useQueryResult } from '../../data/query-result.ts'
import { Text, useText } from '../../i18n/text.tsx'
import { ResidencyBadge } from '../../parts/badges.tsx'
import { type Column, DataTable, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { SearchBox } from '../../parts/search-box.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Select } from '../../ui/input.tsx'
import { Menu, MenuItem, MenuSeparator } from '../../ui/menu.tsx'
import { CreateCollection, EditForm } from './common/collection-form.tsx'
import { COLLECTIONS, type CollectionRow } from './common/collections.ts'
import { DeleteCollection } from './common/delete-collection.tsx'
import { LIST_ORDERS, type ListFilters, SORTS } from './common/filters.ts'
import { Counts } from './counts.tsx'

const route = getRouteApi('/collections')
const PAGE_SIZE = 20
/** Page size of a filtered list. It is larger, because the service filters by name page by page. */
const SEARCH_PAGE_SIZE = 100

export function CollectionsPage() {
  const text = useText()
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  const { q, sort = 'newest', open } = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: ListFilters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const paging = usePaging(`${q} ${sort}`, q ? SEARCH_PAGE_SIZE : PAGE_SIZE)
  const result = useQueryResult(
    COLLECTIONS,
    { ...paging.variables, ...SORTS[sort], filter: q ? { nameContains: q } : null },
    { types: ['Collection', 'Document', 'DeletePayload'] },
  )
  const [editing, setEditing] = useState<CollectionRow | null>(null)
  const [deleting, setDeleting] = useState<CollectionRow | null>(null)
  const columns = useColumns({ mayWrite, onEdit: setEditing, onDelete: setDeleting })
  const create = mayWrite && (
    <Button variant="primary" icon={Plus} onClick={() => change({ open: 'new' })}>
      {text('collections.create')}
    </Button>
  )
  return (
    <>
      <PageHeader title={text('collections.title')} lead={text('collections.lead')} actions={create} />
      <search className="mb-4 grid gap-2 sm:grid-cols-[minmax(0,1fr)_13rem]">
        <SearchBox label={text('collections.search')} value={q ?? ''} onChange={(q) => change({ q: q || undefined })} />
        <Select
          aria-label={text('collections.sort')}
          value={sort}
          onChange={(sort) => change({ sort: sort === 'newest' ? undefined : sort })}
          options={LIST_ORDERS.map((value) => ({ value, label: text(`collections.sort.${value}`) }))}
        />
      </search>
      <DataTable
        label={text('collections.title')}
        result={result}
        page={({ collections }) => collections}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          q ? (
            <EmptyState
              icon={SearchX}
              title={text('common.nothingMatches')}
              actions={<Button onClick={() => change({ q: undefined })}>{text('collections.clearFilters')}</Button>}
            />
          ) : (
            <EmptyState icon={LibraryBig} title={text('collections.none')} actions={create}>
              {text(mayWrite ? 'collections.noneHelp' : 'collections.noneReader')}
            </EmptyState>
          )
        }
      />
      {mayWrite && <CreateCollection isOpen={open === 'new'} onClose={() => change({ open: undefined })} />}
      <Dialog
        isOpen={editing !== null}
        onClose={() => setEditing(null)}
        title={<Text id="collections.editTitle" values={{ name: <UserText key="name">{editing?.name ?? ''}</UserText> }} />}
      >
        {editing && <EditForm collection={editing} onDone={() => setEditing(null)} onCancel={() => setEditing(null)} />}
      </Dialog>
      <DeleteCollection collection={deleting} onClose={() => setDeleting(null)} />
    </>
  )
}

interface Actions {
  readonly mayWrite: boolean
  readonly onEdit: (row: CollectionRow) => void
  readonly onDelete: (row: CollectionRow) => void
}

function useColumns({ mayWrite, onEdit, onDelete }: Actions): readonly Column<CollectionRow>[] {
  const text = useText()
  const columns: readonly Column<CollectionRow>[] = [
    {
      id: 'name',
      header: text('collections.name'),
      className: 'max-w-36 sm:max-w-72',
      cell: ({ id, name, code }) => (
        <>
          <Link to="/collections/$id" params={{ id }} className="font-medium underline-offset-4 hover:underline">
            <UserText>{name}</UserText>
          </Link>
          <div className="text-xs text-muted">
            <Code>{code}</Code>
          </div>
        </>
      ),
    },
    { id: 'documents', header: text('collections.documents'), cell: ({ documentCounts }) => <Counts counts={documentCounts} /> },
    {
      id: 'model',
      header: text('collections.embeddingModel'),
      shown: 'wide',
      cell: ({ embeddingModel }) =>
        embeddingModel ? (
          <span className="flex flex-wrap items-center gap-2">
            <Code className="max-w-44 font-sans">{embeddingModel.id}</Code>
            <ResidencyBadge residency={embeddingModel.residency} />
          </span>
        ) : (
          <span className="text-muted">{text('collections.modelGone')}</span>
        ),
    },
    {
      id: 'passages',
      header: text('collections.chunks'),
      isNumber: true,
      shown: 'wide',
      cell: ({ chunkCount }) => <Digits value={chunkCount} />,
    },
    {
      id: 'created',
      header: text('collections.createdAt'),
      shown: 'wide',
      cell: ({ createdAt }) => <DateTime at={createdAt} style="date" />,
    },
  ]
  if (!mayWrite) return columns
  return [
    ...columns,
    {
      id: 'actions',
      header: '',
      className: 'w-12 text-end',
      cell: (row) => (
        <Menu trigger={<IconButton label={text('collections.actionsOf', { name: row.name.slice(0, 80) })} icon={Ellipsis} size="small" />}>
          <MenuItem icon={Pencil} onSelect={() => onEdit(row)}>
            {text('common.edit')}
          </MenuItem>
          <MenuSeparator />
          <MenuItem icon={Trash2} isDangerous onSelect={() => onDelete(row)}>
            {text('common.delete')}
          </MenuItem>
        </Menu>
      ),
    },
  ]
}
