import { Download, History as HistoryIcon } from 'lucide-react'
import { useScope } from '../../../app/session.tsx'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, RowsTable } from '../../../parts/data-table.tsx'
import { Digits } from '../../../parts/digits.tsx'
import { EmptyState, FailureNotice } from '../../../parts/states.tsx'
import { DateTime } from '../../../parts/time.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { IconButton } from '../../../ui/button.tsx'
import type { LiveDocuments } from '../documents/live.ts'
import { UploadPanel } from '../documents/upload-panel.tsx'
import type { DocumentFacts } from './document.ts'
import { useDownload } from './original.ts'

type Version = DocumentFacts['versions'][number]

/** Whether a file may become the next version: a document of the web or of another file has its content from there. */
export function acceptsVersions({ externalId, parent }: Pick<DocumentFacts, 'externalId' | 'parent'>): boolean {
  return parent === null && !externalId?.startsWith('web_')
}

interface VersionsProps {
  readonly document: DocumentFacts
  readonly live: LiveDocuments
}

/** The versions of a document, and the place for the next. */
export function Versions({ document, live }: VersionsProps) {
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  return (
    <>
      {mayWrite && acceptsVersions(document) && <UploadPanel collection={document.collection} live={live} documentId={document.id} />}
      <History versions={document.versions} />
    </>
  )
}

/** The versions before the live one. Only their files are kept. */
function History({ versions }: Pick<DocumentFacts, 'versions'>) {
  const text = useText()
  const { bytes } = useFormats()
  const { start, isStarting, failure } = useDownload()
  if (versions.length === 0) {
    return (
      <EmptyState icon={HistoryIcon} title={text('document.noVersions')}>
        {text('document.noVersionsHelp')}
      </EmptyState>
    )
  }
  const columns: readonly Column<Version>[] = [
    { id: 'version', header: text('document.version'), cell: ({ version }) => <Digits value={version} /> },
    { id: 'name', header: text('collections.name'), className: 'max-w-60', cell: ({ name }) => <UserText>{name}</UserText> },
    { id: 'size', header: text('documents.size'), isNumber: true, cell: ({ file }) => (file ? bytes(file.sizeBytes) : '—') },
    { id: 'added', header: text('documents.added'), shown: 'wide', cell: ({ createdAt }) => <DateTime at={createdAt} /> },
    { id: 'replaced', header: text('document.replaced'), shown: 'wide', cell: ({ replacedAt }) => <DateTime at={replacedAt} /> },
    {
      id: 'download',
      header: '',
      className: 'w-12',
      cell: ({ file, name }) =>
        file && (
          <IconButton
            label={text('document.downloadOf', { name: name.slice(0, 80) })}
            icon={Download}
            size="small"
            isBusy={isStarting}
            onClick={() => void start(file)}
          />
        ),
    },
  ]
  return (
    <>
      <FailureNotice failure={failure} />
      <RowsTable label={text('document.view.versions')} columns={columns} rows={versions} rowId={({ version }) => String(version)} />
    </>
  )
}
