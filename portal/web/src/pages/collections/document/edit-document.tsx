import { Plus, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useAction } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { useFieldFailures } from '../../../parts/field-failure.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Select } from '../../../ui/input.tsx'
import { toast } from '../../../ui/toast.tsx'
import { type DocumentFacts, UPDATE_DOCUMENT } from './document.ts'
import { KINDS, MAX_FIELDS, type MetadataRow, problemOf, toMetadata, toRows } from './metadata.ts'

const MAX_NAME = 255

interface EditDocumentProps {
  readonly document: DocumentFacts
  readonly isOpen: boolean
  readonly onClose: () => void
}

/** Changes the name and the own fields of a document. */
export function EditDocument({ document, isOpen, onClose }: EditDocumentProps) {
  const text = useText()
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={text('document.edit')} description={text('document.editHelp')}>
      <Form document={document} onClose={onClose} />
    </Dialog>
  )
}

function Form({ document, onClose }: Omit<EditDocumentProps, 'isOpen'>) {
  const text = useText()
  const { run, isRunning, failure } = useAction(UPDATE_DOCUMENT)
  const failures = useFieldFailures(failure, ['name'])
  const [name, setName] = useState(document.name)
  const [rows, setRows] = useState(() => toRows(document.metadata))
  const change = (key: number, next: Partial<MetadataRow>) => setRows(rows.map((row) => (row.key === key ? { ...row, ...next } : row)))
  const problems = new Map(rows.map((row) => [row.key, problemOf(row, rows)]))
  const [isTried, setTried] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!name.trim() || [...problems.values()].some(Boolean)) return
    if (!(await run({ input: { id: document.id, name, metadata: toMetadata(rows) } }))) return
    toast(text('collections.saved'))
    onClose()
  }
  return (
    <form noValidate onSubmit={submit} className="flex flex-col gap-5">
      <Field
        label={text('collections.name')}
        isRequired
        error={failures.of('name') ?? (isTried && !name.trim() ? text('collections.needed') : undefined)}
      >
        {(control) => <Input {...control} maxLength={MAX_NAME} value={name} onChange={({ target }) => setName(target.value)} />}
      </Field>
      <fieldset>
        <legend className="text-sm font-medium">{text('document.metadata')}</legend>
        <p className="mb-2 text-sm text-muted">{text('document.metadataHelp')}</p>
        <div className="flex flex-col gap-2">
          {rows.map((row) => (
            <div key={row.key}>
              <div className="flex flex-wrap items-center gap-2 sm:flex-nowrap">
                <Input
                  aria-label={text('document.fieldName')}
                  placeholder={text('document.fieldName')}
                  maxLength={64}
                  value={row.name}
                  onChange={({ target }) => change(row.key, { name: target.value })}
                  className="min-w-28 flex-1"
                />
                <Select
                  aria-label={text('document.fieldKind')}
                  value={row.kind}
                  onChange={(kind) => change(row.key, { kind, ...(kind === 'boolean' && { value: String(row.value === 'true') }) })}
                  options={KINDS.map((value) => ({ value, label: text(`document.fieldKind.${value}`) }))}
                  className="w-auto min-w-24"
                />
                {row.kind === 'boolean' ? (
                  <Select
                    aria-label={text('document.fieldValue')}
                    value={row.value === 'true' ? 'true' : 'false'}
                    onChange={(value) => change(row.key, { value })}
                    options={[
                      { value: 'true', label: text('document.yes') },
                      { value: 'false', label: text('document.no') },
                    ]}
                    className="min-w-28 flex-1"
                  />
                ) : (
                  <Input
                    aria-label={text('document.fieldValue')}
                    placeholder={text('document.fieldValue')}
                    inputMode={row.kind === 'number' ? 'numeric' : undefined}
                    maxLength={512}
                    value={row.value}
                    onChange={({ target }) => change(row.key, { value: target.value })}
                    className="min-w-28 flex-1"
                  />
                )}
                <IconButton
                  label={text('document.fieldRemove', { name: row.name })}
                  icon={Trash2}
                  size="small"
                  onClick={() => setRows(rows.filter(({ key }) => key !== row.key))}
                />
              </div>
              {isTried && problems.get(row.key) && (
                <p role="alert" className="mt-1 text-sm text-danger-text">
                  {text(`document.problem.${problems.get(row.key)!}`)}
                </p>
              )}
            </div>
          ))}
        </div>
        <Button
          size="small"
          icon={Plus}
          className="mt-2"
          disabled={rows.length >= MAX_FIELDS}
          onClick={() => setRows([...rows, { key: Math.max(-1, ...rows.map(({ key }) => key)) + 1, name: '', kind: 'text', value: '' }])}
        >
          {text('document.fieldAdd')}
        </Button>
      </fieldset>
      <FailureNotice failure={failures.rest} />
      <footer className="flex flex-wrap justify-end gap-2">
        <Button onClick={onClose}>{text('common.cancel')}</Button>
        <Button type="submit" variant="primary" isBusy={isRunning}>
          {text('common.save')}
        </Button>
      </footer>
    </form>
  )
}
