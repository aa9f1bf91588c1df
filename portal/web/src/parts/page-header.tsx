import { ChevronLeft } from 'lucide-react'
import type { ReactNode } from 'react'
import { useEffect } from 'react'
import { useText } from '../i18n/text.tsx'

interface PageHeaderProps {
  readonly title: string
  /** The heading, if it is more than the title: a name with its badge. */
  readonly heading?: ReactNode
  readonly lead?: ReactNode
  readonly actions?: ReactNode
  /** A link to the parent page. */
  readonly back?: ReactNode
}

/** The head of a page: its name, which is also the tab's title, one sentence, and the main buttons. */
export function PageHeader({ title, heading, lead, actions, back }: PageHeaderProps) {
  const text = useText()
  useEffect(() => {
    document.title = `${title} · ${text('app.name')}`
  }, [title, text])
  return (
    <header className="mb-6">
      {back && (
        <div className="mb-2 flex items-center gap-1 text-sm text-muted [&_a:hover]:text-ink">
          <ChevronLeft className="size-4 shrink-0 rtl:-scale-x-100" aria-hidden />
          {back}
        </div>
      )}
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 grow basis-64">
          <h1 className="text-2xl font-semibold tracking-tight wrap-anywhere rtl:tracking-normal">{heading ?? title}</h1>
          {lead && <p className="mt-1 max-w-2xl text-muted">{lead}</p>}
        </div>
        {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
    </header>
  )
}
