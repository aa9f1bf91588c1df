import { useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { Text, useFormats, useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { diffLines, foldSame } from '../../parts/diff/diff.ts'
import { Digits } from '../../parts/digits.tsx'
import { FailureNotice, NotFound, WhenReady } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Button } from '../../ui/button.tsx'
import { classes } from '../../ui/classes.ts'
import { ConfirmDialog, Sheet } from '../../ui/dialog.tsx'
import { Badge } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { writeJson } from './rules/definition.ts'
import { DIFF, UPDATE, VERSIONS, type Workflow } from './workflows.ts'

interface VersionRow {
  readonly version: number
  readonly createdAt: string
}

interface VersionsProps {
  readonly workflow: Workflow
  readonly open: number | undefined
  readonly onOpen: (version: number | undefined) => void
}

/** The versions of a workflow, and what each of them changed. */
export function Versions({ workflow, open, onOpen }: VersionsProps) {
  const text = useText()
  const paging = usePaging()
  const result = useQueryResult(VERSIONS, { id: workflow.id, ...paging.variables }, { types: ['Workflow'] })
  const columns: readonly Column<VersionRow>[] = [
    {
      id: 'version',
      header: text('workflows.version'),
      cell: ({ version }) => (
        <span className="inline-flex items-center gap-2">
          <button type="button" onClick={() => onOpen(version)} className="min-h-6 font-medium underline-offset-4 hover:underline">
            <Text id="workflows.versionNumber" values={{ version: <Digits value={version} /> }} />
          </button>
          {version === workflow.version && <Badge tone="success">{text('workflows.current')}</Badge>}
        </span>
      ),
    },
    { id: 'created', header: text('workflows.savedAt'), cell: ({ createdAt }) => <DateTime at={createdAt} /> },
  ]
  return (
    <>
      <p className="mb-4 text-sm text-muted">{text('workflows.versionsHelp')}</p>
      <DataTable
        label={text('workflows.tab.versions')}
        result={result}
        page={(data) => data.workflow?.versions ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ version }) => String(version)}
        empty={null}
      />
      <Sheet
        isOpen={open !== undefined}
        onClose={() => onOpen(undefined)}
        title={open !== undefined && <Text id="workflows.versionNumber" values={{ version: <Digits value={open} /> }} />}
        size="large"
      >
        {open !== undefined && <VersionDetails workflow={workflow} version={open} onDone={() => onOpen(undefined)} />}
      </Sheet>
    </>
  )
}

interface VersionDetailsProps {
  readonly workflow: Workflow
  readonly version: number
  readonly onDone: () => void
}

function VersionDetails({ workflow, version, onDone }: VersionDetailsProps) {
  const text = useText()
  const update = useAction(UPDATE)
  const [isConfirming, setConfirming] = useState(false)
  const result = useQueryResult(DIFF, { id: workflow.id, from: version - 1, to: version })
  return (
    <WhenReady result={result}>
      {({ workflow: found }) => {
        if (!found?.after) return <NotFound />
        const { before, after } = found
        return (
          <div className="flex flex-col gap-4">
            <div className="flex flex-wrap items-center justify-between gap-2">
              <p className="text-sm text-muted">
                <DateTime at={after.createdAt} />
              </p>
              {version !== workflow.version && <Button onClick={() => setConfirming(true)}>{text('workflows.restore')}</Button>}
            </div>
            <h3 className="text-sm">
              {before ? (
                <Text id="workflows.changesSince" values={{ version: <Digits value={before.version} /> }} />
              ) : (
                text('workflows.definition')
              )}
            </h3>
            <Diff before={before ? writeJson(before.definition) : null} after={writeJson(after.definition)} />
            <ConfirmDialog
              isOpen={isConfirming}
              onClose={() => {
                update.reset()
                setConfirming(false)
              }}
              title={<Text id="workflows.restoreTitle" values={{ version: <Digits value={version} /> }} />}
              description={text('workflows.restoreHelp')}
              action={text('workflows.restore')}
              onConfirm={async () => {
                if (!(await update.run({ input: { id: workflow.id, definition: after.definition } }))) return false
                toast(text('workflows.saved'))
                onDone()
                return true
              }}
            >
              <FailureNotice failure={update.failure} />
            </ConfirmDialog>
          </div>
        )
      }}
    </WhenReady>
  )
}

/** What changed, line by line. `before` null: the whole is shown. */
function Diff({ before, after }: { readonly before: string | null; readonly after: string }) {
  const text = useText()
  const { number } = useFormats()
  const lines = diffLines(before ?? after, after)
  if (before !== null && lines.every(({ kind }) => kind === 'same'))
    return <p className="text-sm text-muted">{text('workflows.noChanges')}</p>
  const shown = before === null ? lines : foldSame(lines)
  return (
    <section
      aria-label={text('workflows.changes')}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
      tabIndex={0}
      className="overflow-auto rounded-lg border bg-sunken py-2"
    >
      <div dir="ltr" className="w-max min-w-full font-mono text-xs leading-5">
        {shown.map((line, index) =>
          typeof line === 'number' ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines never change places.
            <p key={index} dir="auto" className="my-1 bg-hover px-3 font-sans text-muted">
              {text('workflows.sameLines', { count: line, shown: number(line) })}
            </p>
          ) : (
            <p
              key={`${line.before} ${line.after}`}
              className={classes(
                'px-3 whitespace-pre',
                line.kind === 'added' && 'bg-success-soft text-success-text',
                line.kind === 'removed' && 'bg-danger-soft text-danger-text',
              )}
            >
              <span aria-hidden className="inline-block w-5 select-none">
                {{ same: '', added: '+', removed: '−' }[line.kind]}
              </span>
              {line.kind !== 'same' && <span className="sr-only">{text(`workflows.diff.${line.kind}`)} </span>}
              {line.text}
            </p>
          ),
        )}
      </div>
    </section>
  )
}
