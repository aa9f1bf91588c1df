import { CircleAlert, CircleCheck, WandSparkles } from 'lucide-react'
import { useDeferredValue, useMemo, useRef, useState } from 'react'
import schema from '../../../../../schema/workflow.schema.json'
import type { Failure } from '../../data/failure.ts'
import { PUBLIC_URL } from '../../data/public-url.ts'
import { useAction } from '../../data/query-result.ts'
import { Text, useFormats, useText } from '../../i18n/text.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FailureText } from '../../parts/failure-text.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { UnsavedGuard } from '../../parts/unsaved-guard.tsx'
import { Code } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Notice } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { type EditorHandle, JsonEditor } from './json-editor.tsx'
import { useProblemText } from './problem-text.ts'
import { writeJson } from './rules/definition.ts'
import { findProblems, type Problem } from './rules/problems.ts'
import { type Parsed, parseSource, readPath, type SyntaxMistake, writePath } from './rules/source.ts'
import { UPDATE, type Workflow } from './workflows.ts'

/** A mistake and where it stands. */
interface Shown {
  readonly line: number
  readonly path: string
  readonly what: { readonly mistake: SyntaxMistake } | { readonly problem: Problem } | { readonly failure: Failure }
}

function check(source: string): { readonly parsed: Parsed; readonly mistakes: readonly Shown[] } {
  const parsed = parseSource(source)
  if ('error' in parsed) return { parsed, mistakes: [{ line: parsed.line, path: '', what: { mistake: parsed.error } }] }
  const mistakes = findProblems(schema, parsed.value).map((problem) => ({
    line: parsed.lineOf(problem.path),
    path: writePath(problem.path),
    what: { problem },
  }))
  return { parsed, mistakes: mistakes.sort((a, b) => a.line - b.line) }
}

/** What the service refused in the definition. */
function refused(failure: Failure, parsed: Parsed): Shown | null {
  const { param } = failure
  if ('error' in parsed || !/^(input\.)?definition\b/.test(param ?? '')) return null
  const path = readPath(param!.replace(/^(input\.)?definition\.?/, ''))
  return { line: parsed.lineOf(path), path: writePath(path), what: { failure } }
}

/** The definition as JSON. The published schema checks it while you write, and the service when you save. */
export function Editor({ workflow }: { readonly workflow: Workflow }) {
  const text = useText()
  const update = useAction(UPDATE)
  const handle = useRef<EditorHandle>(null)
  const [saved, setSaved] = useState(() => ({ version: workflow.version, source: writeJson(workflow.definition) }))
  const [source, setSource] = useState(saved.source)
  /** What the service said of this text. */
  const [sent, setSent] = useState<string | null>(null)
  const deferred = useDeferredValue(source)
  const { parsed, mistakes } = useMemo(() => check(deferred), [deferred])
  const isDirty = source !== saved.source
  const isNewer = workflow.version > saved.version && !update.isRunning

  const failure = sent === source ? update.failure : null
  const refusal = failure && refused(failure, parsed)
  const shown = refusal ? [refusal] : mistakes
  const change = (next: string) => {
    setSource(next)
    setSent(null)
  }
  const load = () => {
    const next = writeJson(workflow.definition)
    setSaved({ version: workflow.version, source: next })
    change(next)
  }
  const save = async () => {
    const { parsed, mistakes } = check(source)
    if ('error' in parsed || mistakes.length > 0) return handle.current?.goTo(mistakes[0]!.line)
    setSent(source)
    const result = await update.run({ input: { id: workflow.id, definition: parsed.value } })
    if (!result?.updateWorkflow) return
    setSaved({ version: result.updateWorkflow.workflow.version, source })
    toast(text('workflows.saved'))
  }

  return (
    <div className="flex flex-col gap-4">
      <p className="text-sm text-muted">
        <Text id="workflows.editorHelp" values={{ schema: <SchemaLink /> }} />
      </p>
      {isNewer && (
        <Notice
          tone="warning"
          actions={
            <Button size="small" onClick={load}>
              {text('workflows.loadNewer')}
            </Button>
          }
        >
          <Text id="workflows.newer" values={{ version: <Digits value={workflow.version} /> }} />
        </Notice>
      )}
      <JsonEditor
        handle={handle}
        value={source}
        onChange={change}
        marked={new Set(shown.map(({ line }) => line))}
        aria-label={text('workflows.definition')}
        aria-describedby="definition-check"
        aria-invalid={shown.length > 0 || undefined}
      />
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div id="definition-check" role="status" className="min-w-0 grow basis-72">
          <Mistakes shown={shown} onOpen={(line) => handle.current?.goTo(line)} />
        </div>
        <div className="flex flex-wrap gap-2">
          <Button icon={WandSparkles} disabled={'error' in parsed} onClick={() => !('error' in parsed) && change(writeJson(parsed.value))}>
            {text('workflows.format')}
          </Button>
          <Button disabled={!isDirty} onClick={() => change(saved.source)}>
            {text('workflows.discard')}
          </Button>
          <Button variant="primary" isBusy={update.isRunning} disabled={!isDirty || mistakes.length > 0} onClick={save}>
            {text('workflows.saveVersion')}
          </Button>
        </div>
      </div>
      <FailureNotice failure={refusal ? null : failure} />
      <UnsavedGuard isDirty={isDirty} />
    </div>
  )
}

function SchemaLink() {
  const text = useText()
  return (
    <a
      href={`${PUBLIC_URL}/v1/workflow.schema.json`}
      target="_blank"
      rel="noreferrer"
      className="text-accent-text underline underline-offset-4"
    >
      {text('workflows.schema')}
    </a>
  )
}

function Mistakes({ shown, onOpen }: { readonly shown: readonly Shown[]; readonly onOpen: (line: number) => void }) {
  const text = useText()
  const { number } = useFormats()
  const problemText = useProblemText()
  if (shown.length === 0) {
    return (
      <p className="flex items-center gap-2 text-sm text-success-text">
        <CircleCheck className="size-4 shrink-0" aria-hidden />
        {text('workflows.noMistakes')}
      </p>
    )
  }
  return (
    <>
      <p className="mb-2 flex items-center gap-2 text-sm font-medium text-danger-text">
        <CircleAlert className="size-4 shrink-0" aria-hidden />
        {text('workflows.mistakes', { count: shown.length, shown: number(shown.length) })}
      </p>
      <ul className="flex flex-col gap-1.5 text-sm">
        {shown.map(({ line, path, what }) => (
          <li key={`${line} ${path} ${JSON.stringify(what)}`} className="wrap-anywhere">
            <button
              type="button"
              onClick={() => onOpen(line)}
              className="min-h-6 text-start text-accent-text underline-offset-4 hover:underline"
            >
              {text('workflows.line', { line: number(line) })}
            </button>
            {path && (
              <>
                {' '}
                <Code className="text-muted">{path}</Code>
              </>
            )}
            <span className="block">
              {'mistake' in what ? (
                text(`workflows.mistake.${what.mistake}`)
              ) : 'problem' in what ? (
                problemText(what.problem)
              ) : (
                <FailureText failure={what.failure} />
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}
