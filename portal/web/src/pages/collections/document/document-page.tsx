import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Download, Ellipsis, FileUp, Pencil, RotateCw, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { CopyButton } from '../../../parts/copy-button.tsx'
import { Digits } from '../../../parts/digits.tsx'
import { PageHeader } from '../../../parts/page-header.tsx'
import { FailureNotice, NotFound, WhenReady } from '../../../parts/states.tsx'
import { DateTime } from '../../../parts/time.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { ConfirmDialog } from '../../../ui/dialog.tsx'
import { Menu, MenuItem, MenuSeparator } from '../../../ui/menu.tsx'
import { Card, Notice } from '../../../ui/surface.tsx'
import { Tabs } from '../../../ui/tabs.tsx'
import { toast } from '../../../ui/toast.tsx'
import { DOCUMENT_VIEWS } from '../common/filters.ts'
import { type LiveDocuments, useLiveDocuments } from '../documents/live.ts'
import { DocumentFailure, DocumentProgress, DocumentStatus, DocumentWarnings } from '../documents/status.tsx'
import { Chunks } from './chunks.tsx'
import { DELETE_DOCUMENT, DOCUMENT, type DocumentFacts, RETRY_DOCUMENT } from './document.ts'
import { EditDocument } from './edit-document.tsx'
import { useDownload } from './original.ts'
import { TextView } from './text-view.tsx'
import { acceptsVersions, Versions } from './versions.tsx'

const route = getRouteApi('/collections/$id/documents/$documentId')

export function DocumentPage() {
  const { id, documentId } = route.useParams()
  const result = useQueryResult(DOCUMENT, { id: documentId })
  const live = useLiveDocuments(id, result)
  return (
    <WhenReady result={result}>
      {({ document }) => {
        // A document of another collection than that of the address counts as not found.
        if (document?.collection.id !== id) return <NotFound />
        const now = live.of(documentId)
        if (now === null) return <NotFound />
        return <Whole key={documentId} document={{ ...document, ...now, name: document.name }} live={live} />
      }}
    </WhenReady>
  )
}

function Whole({ document, live }: { readonly document: DocumentFacts; readonly live: LiveDocuments }) {
  const text = useText()
  const { passage, view = passage ? 'text' : 'passages' } = route.useSearch()
  const navigate = route.useNavigate()
  const { id, name, collection } = document
  const views = {
    passages: <Chunks key={`${document.version} ${document.status}`} collectionId={collection.id} documentId={id} />,
    text: <TextView document={document} />,
    versions: <Versions document={document} live={live} />,
  }
  return (
    <>
      <PageHeader
        title={name}
        heading={
          // A name in the other direction starts where the page's lines start.
          <span className="flex">
            <UserText className="line-clamp-2 whitespace-normal">{name}</UserText>
          </span>
        }
        back={
          <Link to="/collections/$id" params={{ id: collection.id }} className="min-w-0">
            <UserText className="min-w-0">{collection.name}</UserText>
          </Link>
        }
        actions={<Actions document={document} />}
      />
      <State document={document} />
      <div className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_19rem]">
        <Tabs
          label={text('document.views')}
          value={view}
          onChange={(view) => void navigate({ search: (now) => ({ ...now, view }), replace: true, resetScroll: false })}
          tabs={DOCUMENT_VIEWS.map((value) => ({ value, label: text(`document.view.${value}`), content: views[value] }))}
          className="min-w-0"
        />
        <Facts document={document} />
      </div>
    </>
  )
}

function Actions({ document }: { readonly document: DocumentFacts }) {
  const text = useText()
  const navigate = useNavigate()
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  const download = useDownload()
  const retrying = useAction(RETRY_DOCUMENT)
  const deleting = useAction(DELETE_DOCUMENT)
  const [open, setOpen] = useState<'edit' | 'delete' | null>(null)
  const { id, file, collection, status, replacement } = document
  const isFailed = status === 'FAILED' || replacement?.status === 'FAILED'
  return (
    <>
      {isFailed && mayWrite && (
        <Button variant="primary" icon={RotateCw} isBusy={retrying.isRunning} onClick={() => void retrying.run({ id })}>
          {text('common.tryAgain')}
        </Button>
      )}
      <Button icon={Download} isBusy={download.isStarting} onClick={() => void download.start(file)}>
        {text('document.download')}
      </Button>
      {mayWrite && (
        <Menu trigger={<IconButton label={text('common.actions')} icon={Ellipsis} variant="secondary" />}>
          <MenuItem icon={Pencil} onSelect={() => setOpen('edit')}>
            {text('common.edit')}
          </MenuItem>
          {acceptsVersions(document) && (
            <MenuItem
              icon={FileUp}
              onSelect={() =>
                void navigate({
                  to: '/collections/$id/documents/$documentId',
                  params: { id: collection.id, documentId: id },
                  search: { view: 'versions' },
                })
              }
            >
              {text('document.newVersion')}
            </MenuItem>
          )}
          <MenuSeparator />
          <MenuItem icon={Trash2} isDangerous onSelect={() => setOpen('delete')}>
            {text('common.delete')}
          </MenuItem>
        </Menu>
      )}
      <div className="basis-full empty:hidden">
        <FailureNotice failure={download.failure ?? retrying.failure} />
      </div>
      <EditDocument document={document} isOpen={open === 'edit'} onClose={() => setOpen(null)} />
      <ConfirmDialog
        isOpen={open === 'delete'}
        onClose={() => setOpen(null)}
        isDangerous
        title={text('document.deleteTitle')}
        description={text('documents.deleteHelp')}
        action={text('document.deleteAction')}
        onConfirm={async () => {
          if (!(await deleting.run({ id }))) return false
          toast(text('document.deleted'))
          void navigate({ to: '/collections/$id', params: { id: collection.id }, replace: true })
          return true
        }}
      >
        <FailureNotice failure={deleting.failure} />
      </ConfirmDialog>
    </>
  )
}

/** The facts to know before reading: that the document is in work, failed, or is incomplete. */
function State({ document }: { readonly document: DocumentFacts }) {
  const text = useText()
  const { status, error, warnings, replacement, name } = document
  return (
    <div className="mb-5 flex flex-col gap-2 empty:hidden">
      {status === 'QUEUED' && <Notice>{text('document.waits')}</Notice>}
      {status === 'PROCESSING' && (
        <Notice>
          <DocumentProgress document={document} name={name} />
        </Notice>
      )}
      {error && (
        <Notice tone="danger">
          <DocumentFailure error={error} isWhole />
        </Notice>
      )}
      {replacement && (
        <Notice tone={replacement.status === 'FAILED' ? 'danger' : 'info'}>
          <p>{text(`documents.replacement.${replacement.status}`)}</p>
          {replacement.error && <DocumentFailure error={replacement.error} isWhole />}
          {replacement.status === 'PROCESSING' && (
            <DocumentProgress document={{ status: 'PROCESSING', stage: replacement.stage, progress: replacement.progress }} name={name} />
          )}
        </Notice>
      )}
      {warnings.length > 0 && (
        <Notice tone="warning">
          <DocumentWarnings warnings={warnings} isWhole />
        </Notice>
      )}
    </div>
  )
}

function Facts({ document }: { readonly document: DocumentFacts }) {
  const text = useText()
  const { bytes, percent, number } = useFormats()
  const { id, status, language, pageCount, chunkCount, version, attempts, file, parent, externalId, createdAt, collection } = document
  const metadata = Object.entries((document.metadata ?? {}) as Record<string, string | number | boolean>)
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text('documents.status'), <DocumentStatus key="status" status={status} />],
    [text('documents.language'), language === 'ar' || language === 'en' ? text(`documents.language.${language}`) : null],
    [text('documents.pages'), pageCount !== null && <Digits key="pages" value={pageCount} />],
    [text('collections.chunks'), <Digits key="passages" value={chunkCount} />],
    [text('documents.size'), bytes(file.sizeBytes)],
    [text('document.type'), <Code key="type">{file.mediaType}</Code>],
    [text('document.version'), <Digits key="version" value={version} />],
    [text('document.attempts'), attempts > 1 && <Digits key="attempts" value={attempts} />],
    [text('documents.added'), <DateTime key="added" at={createdAt} />],
    [
      text('document.inside'),
      parent && (
        <Link
          key="parent"
          to="/collections/$id/documents/$documentId"
          params={{ id: collection.id, documentId: parent.id }}
          className="underline underline-offset-4"
        >
          <UserText>{parent.name}</UserText>
        </Link>
      ),
    ],
    [text('document.externalId'), externalId && <Code key="external">{externalId}</Code>],
    [
      text('models.id'),
      <span key="id" className="flex min-w-0 items-center gap-1">
        <Code className="min-w-0">{id}</Code>
        <CopyButton value={id} label={text('models.copyId')} />
      </span>,
    ],
  ]
  return (
    <aside aria-label={text('document.facts')} className="flex flex-col gap-4">
      <Card>
        <FactList facts={facts} />
      </Card>
      {metadata.length > 0 && (
        <Card>
          <h2 className="mb-3 text-sm">{text('document.metadata')}</h2>
          <FactList
            facts={metadata.map(([name, value]) => [
              name,
              typeof value === 'boolean' ? (
                text(value ? 'document.yes' : 'document.no')
              ) : typeof value === 'number' ? (
                number(value, { useGrouping: false })
              ) : (
                <UserText key={name}>{value}</UserText>
              ),
            ])}
          />
        </Card>
      )}
      {document.similarDocuments.length > 0 && (
        <Card>
          <h2 className="mb-1 text-sm">{text('document.similar')}</h2>
          <p className="mb-3 text-sm text-muted">{text('document.similarHelp')}</p>
          <ul className="flex flex-col gap-2 text-sm">
            {document.similarDocuments.map(({ document, similarity }) => (
              <li key={document.id} className="flex items-baseline justify-between gap-3">
                <Link
                  to="/collections/$id/documents/$documentId"
                  params={{ id: collection.id, documentId: document.id }}
                  className="min-w-0 underline underline-offset-4"
                >
                  <UserText>{document.name}</UserText>
                </Link>
                <span className="shrink-0 text-muted tabular-nums">{percent(Math.round(similarity * 100) / 100)}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
    </aside>
  )
}

function FactList({ facts }: { readonly facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(0,auto)_minmax(0,1fr)] gap-x-5 gap-y-2.5 text-sm">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name} className="col-span-2 grid grid-cols-subgrid items-center">
            <dt className="max-w-28 text-muted">
              <UserText>{name}</UserText>
            </dt>
            <dd className="min-w-0">{value}</dd>
          </div>
        ))}
    </dl>
  )
}
