import { Link } from '@tanstack/react-router'
import { Check, ChevronRight } from 'lucide-react'
import type { ReactNode } from 'react'
import { useFormats, useText } from '../../i18n/text.tsx'
import { Card, Progress } from '../../ui/surface.tsx'
import type { Step } from './overview.ts'

interface ChecklistProps {
  readonly steps: readonly { readonly step: Step; readonly isDone: boolean }[]
  /** The collection that documents can be added to. */
  readonly collectionId: string | undefined
}

/** What to do first. It ticks itself, and goes away once all is done. */
export function Checklist({ steps, collectionId }: ChecklistProps) {
  const text = useText()
  const { number } = useFormats()
  const done = steps.filter(({ isDone }) => isDone).length
  if (done === steps.length) return null
  const next = steps.find(({ isDone }) => !isDone)
  return (
    <Card aria-labelledby="first-steps" className="mb-8">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h2 id="first-steps" className="text-base">
          {text('home.first')}
        </h2>
        <p className="text-sm text-muted">{text('home.firstDone', { done: number(done), all: number(steps.length) })}</p>
      </div>
      <div className="mt-3 mb-2">
        <Progress label={text('home.first')} value={done / steps.length} />
      </div>
      <ol className="-mx-2 flex flex-col">
        {steps.map(({ step, isDone }) => (
          <li key={step}>
            <StepLink step={step} collectionId={collectionId}>
              <span
                aria-hidden
                className={`flex size-6 shrink-0 items-center justify-center rounded-full border ${
                  isDone
                    ? 'border-transparent bg-success-soft text-success-text'
                    : step === next?.step
                      ? 'border-accent'
                      : 'border-line-strong/60'
                }`}
              >
                {isDone && <Check className="size-3.5" strokeWidth={3} />}
              </span>
              <span className="min-w-0 grow">
                <span className={`block text-sm ${isDone ? 'text-muted' : 'font-medium'}`}>
                  {text(`home.step.${step}`)}
                  {isDone && <span className="sr-only"> {text('home.stepDone')}</span>}
                </span>
                {!isDone && <span className="block text-sm text-muted">{text(`home.step.${step}.help`)}</span>}
              </span>
              <ChevronRight className="size-4 shrink-0 text-muted rtl:-scale-x-100" aria-hidden />
            </StepLink>
          </li>
        ))}
      </ol>
    </Card>
  )
}

const PATHS = { collection: '/collections', document: '/collections', ask: '/agents', key: '/keys' } as const

function StepLink({
  step,
  collectionId,
  children,
}: {
  readonly step: Step
  readonly collectionId: string | undefined
  readonly children: ReactNode
}) {
  const linkClasses = 'flex items-center gap-3 rounded-lg px-2 py-2.5 hover:bg-hover'
  if (step === 'document' && collectionId) {
    return (
      <Link to="/collections/$id" params={{ id: collectionId }} className={linkClasses}>
        {children}
      </Link>
    )
  }
  return (
    <Link to={PATHS[step]} className={linkClasses}>
      {children}
    </Link>
  )
}
