import { Link } from '@tanstack/react-router'
import { CircleAlert, CircleCheck, FileUp, LoaderCircle, RotateCw, Upload, X } from 'lucide-react'
import { type DragEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { useClient } from 'urql'
import { useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { FailureText } from '../../../parts/failure-text.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { classes } from '../../../ui/classes.ts'
import { Card, Progress } from '../../../ui/surface.tsx'
import type { CollectionFacts } from '../common/collections.ts'
import { UPLOAD_LIMITS } from './documents.ts'
import { MAX_AUDIO_BYTES, type Rules } from './formats.ts'
import type { LiveDocuments } from './live.ts'
import { DocumentFailure, DocumentProgress, DocumentStatus } from './status.tsx'
import { queueOf } from './transport.ts'
import { isOver, type UploadItem, type UploadQueue } from './uploads.ts'

interface UploadPanelProps {
  readonly collection: Pick<CollectionFacts, 'id' | 'ocr'> & { readonly transcriptionModel: object | null }
  readonly live: LiveDocuments
  /** The document whose next version a file becomes. Absent: each file becomes a document of its own. */
  readonly documentId?: string
}

/** Accepts files that are dropped or chosen, and shows the progress of each. */
export function UploadPanel({ collection, live, documentId }: UploadPanelProps) {
  const text = useText()
  const { bytes } = useFormats()
  const client = useClient()
  const queue = useMemo(() => queueOf(client, collection.id, documentId ?? null), [client, collection.id, documentId])
  const items = useSyncExternalStore(queue.watch, queue.items)
  const input = useRef<HTMLInputElement>(null)
  const helpId = useId()
  const limits = useQueryResult(UPLOAD_LIMITS, {}, { types: ['Upload', 'Document'] })
  const organization = limits.state === 'ready' ? limits.data.organization : null
  const storage = organization?.quota?.storageBytes
  const rules: Rules = {
    maxFileBytes: organization?.limits?.maxFileBytes ?? organization?.plan?.maxFileBytes ?? null,
    roomBytes: storage && storage.limit !== null ? Math.max(storage.limit - storage.used, 0) : null,
    readsImages: collection.ocr === 'AUTO',
    readsAudio: collection.transcriptionModel !== null,
  }
  const whenKnown = useKnown(rules, limits.state === 'ready' || (limits.state === 'failed' && limits.failure.code !== 'unreachable'))
  const add = (files: readonly File[]) => void queue.add(documentId ? files.slice(0, 1) : files, whenKnown())
  const isSending = items.some((item) => !isOver(item))
  useLeaveGuard(isSending)
  return (
    <>
      <DropZone onFiles={add}>
        <span className="flex size-10 shrink-0 items-center justify-center rounded-full bg-accent-soft text-accent-text">
          <FileUp className="size-5" aria-hidden />
        </span>
        <div className="min-w-0 grow basis-52">
          <p className="font-medium">{text(documentId ? 'document.drop' : 'documents.drop')}</p>
          <p id={helpId} className="text-sm text-muted">
            {text('documents.formats')} {rules.readsImages ? text('documents.formatsImages') : ''}{' '}
            {rules.readsAudio ? text('documents.formatsAudio') : ''}{' '}
            {rules.maxFileBytes !== null && text('documents.formatsSize', { size: bytes(rules.maxFileBytes) })}
          </p>
        </div>
        <input
          ref={input}
          type="file"
          multiple={!documentId}
          // The button below opens this input.
          hidden
          onChange={({ target }) => {
            add([...(target.files ?? [])])
            // With an empty value the same file can be chosen again.
            target.value = ''
          }}
        />
        <Button variant="primary" icon={Upload} aria-describedby={helpId} onClick={() => input.current?.click()}>
          {text(documentId ? 'document.choose' : 'documents.choose')}
        </Button>
      </DropZone>
      {items.length > 0 && <UploadList collectionId={collection.id} queue={queue} items={items} rules={rules} live={live} />}
    </>
  )
}

/** Returns a function that resolves with a value once it is known. */
function useKnown<Value>(value: Value, isKnown: boolean): () => Promise<Value> {
  const latest = useRef(value)
  latest.current = value
  const [known] = useState(() => Promise.withResolvers<void>())
  useEffect(() => {
    if (isKnown) known.resolve()
  }, [isKnown, known])
  return async () => {
    await known.promise
    return latest.current
  }
}

/** Makes the browser ask before the page is left while uploads run. */
function useLeaveGuard(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return
    const preventUnload = (event: BeforeUnloadEvent) => event.preventDefault()
    window.addEventListener('beforeunload', preventUnload)
    return () => window.removeEventListener('beforeunload', preventUnload)
  }, [isOn])
}

function DropZone({ onFiles, children }: { readonly onFiles: (files: readonly File[]) => void; readonly children: ReactNode }) {
  const [isOver, setOver] = useState(false)
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes('Files')
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: whoever does not drag has the button.
    <div
      onDragOver={(event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false)
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        setOver(false)
        onFiles([...event.dataTransfer.files])
      }}
      className={classes(
        'mb-4 flex flex-wrap items-center gap-4 rounded-xl border-2 border-dashed p-4 transition-colors sm:p-5',
        isOver ? 'border-accent bg-accent-soft' : 'bg-surface',
      )}
    >
      {children}
    </div>
  )
}

interface UploadListProps {
  readonly collectionId: string
  readonly queue: UploadQueue
  readonly items: readonly UploadItem[]
  readonly rules: Rules
  readonly live: LiveDocuments
}

function UploadList({ collectionId, queue, items, rules, live }: UploadListProps) {
  const text = useText()
  const { number } = useFormats()
  const over = items.filter(isOver).length
  const troubled = items.filter(isTroubled).length
  return (
    <Card className="mb-4 p-0 sm:p-0" aria-label={text('documents.uploads')}>
      <header className="flex flex-wrap items-center gap-3 border-b px-4 py-2.5">
        <h2 role="status" className="min-w-0 grow text-sm">
          {text(over === items.length ? 'documents.uploadsDone' : 'documents.uploadsUnderWay', {
            count: items.length,
            done: number(over),
            total: number(items.length),
          })}
          {troubled > 0 && (
            <span className="text-danger-text"> {text('documents.uploadsTroubled', { count: troubled, shown: number(troubled) })}</span>
          )}
        </h2>
        {over > 0 && (
          <Button size="small" onClick={() => queue.clear()}>
            {text('documents.uploadsClear')}
          </Button>
        )}
      </header>
      <ul className="max-h-80 divide-y overflow-y-auto">
        {[...items].sort(byTrouble).map((item) => (
          <UploadRow key={item.key} collectionId={collectionId} queue={queue} item={item} rules={rules} live={live} />
        ))}
      </ul>
    </Card>
  )
}

const isTroubled = ({ state }: UploadItem) => state === 'refused' || state === 'failed'
/** Sorts files that need the reader's action first. */
const byTrouble = (one: UploadItem, other: UploadItem) => Number(isTroubled(other)) - Number(isTroubled(one))

function UploadRow({ collectionId, queue, item, rules, live }: Omit<UploadListProps, 'items'> & { readonly item: UploadItem }) {
  const text = useText()
  const { bytes } = useFormats()
  const { key, name, sizeBytes, state, documentId } = item
  const newest = documentId ? live.of(documentId) : undefined
  // For a file that becomes the next version, the state is that of the replacement, which searches do not find yet.
  const document = newest?.replacement ? { ...newest, ...newest.replacement } : newest
  const short = name.slice(0, 80)
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-sm">
      <UploadIcon state={document?.status === 'FAILED' ? 'failed' : state} />
      <div className="min-w-0 grow basis-40">
        <div className="flex items-baseline gap-2">
          {documentId ? (
            <Link
              to="/collections/$id/documents/$documentId"
              params={{ id: collectionId, documentId }}
              className="min-w-0 font-medium underline-offset-4 hover:underline"
            >
              <UserText>{name}</UserText>
            </Link>
          ) : (
            <UserText className="font-medium">{name}</UserText>
          )}
          <span className="shrink-0 text-xs text-muted">{bytes(sizeBytes)}</span>
        </div>
        <UploadWords item={item} rules={rules} />
        {document?.error && document.status === 'FAILED' && <DocumentFailure error={document.error} />}
      </div>
      <div className="w-40 max-w-full">
        {state === 'sending' && (
          <Progress label={text('documents.uploadOf', { name: short })} value={sizeBytes > 0 ? item.sentBytes / sizeBytes : null} />
        )}
        {document?.status === 'PROCESSING' && <DocumentProgress document={document} name={name} />}
        {document && document.status !== 'PROCESSING' && <DocumentStatus status={document.status} />}
      </div>
      {!isOver(item) && (
        <IconButton label={text('documents.cancelUpload', { name: short })} icon={X} size="small" onClick={() => queue.cancel(key)} />
      )}
      {state === 'failed' && (
        <IconButton label={text('documents.retryUpload', { name: short })} icon={RotateCw} size="small" onClick={() => queue.retry(key)} />
      )}
    </li>
  )
}

function UploadIcon({ state }: Pick<UploadItem, 'state'>) {
  if (state === 'attached' || state === 'unchanged') return <CircleCheck className="size-4 shrink-0 text-success-text" aria-hidden />
  if (state === 'refused' || state === 'failed') return <CircleAlert className="size-4 shrink-0 text-danger-text" aria-hidden />
  if (state === 'cancelled') return <X className="size-4 shrink-0 text-muted" aria-hidden />
  return <LoaderCircle className={classes('size-4 shrink-0 text-muted', state !== 'waiting' && 'animate-spin')} aria-hidden />
}

/** The state of a file, or why it is not sent. */
function UploadWords({ item, rules }: { readonly item: UploadItem; readonly rules: Rules }) {
  const text = useText()
  const { bytesApart } = useFormats()
  const { state, refusal, failure } = item
  if (refusal) {
    const limits = { noRoom: rules.roomBytes, tooLarge: rules.maxFileBytes, soundTooLarge: MAX_AUDIO_BYTES }
    const [size, limit] = bytesApart(item.sizeBytes, (refusal in limits ? limits[refusal as keyof typeof limits] : null) ?? 0)
    return <p className="text-danger-text">{text(`documents.refused.${refusal}`, { size, limit })}</p>
  }
  if (failure)
    return (
      <p className="text-danger-text">
        <FailureText failure={failure} />
      </p>
    )
  if (state === 'attached') return null
  return <p className="text-xs text-muted">{text(`documents.upload.${state}`)}</p>
}
