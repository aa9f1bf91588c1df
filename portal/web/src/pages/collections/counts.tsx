import { useFormats, useText } from '../../i18n/text.tsx'
import { Badge } from '../../ui/surface.tsx'

interface CountsProps {
  readonly counts: { readonly queued: number; readonly processing: number; readonly ready: number; readonly failed: number }
}

/** The number of documents, and of those that are in work or have failed. */
export function Counts({ counts: { queued, processing, ready, failed } }: CountsProps) {
  const text = useText()
  const { number } = useFormats()
  const working = queued + processing
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <span className="whitespace-nowrap">{text('collections.countReady', { count: ready, shown: number(ready) })}</span>
      {working > 0 && (
        <Badge tone="info">
          <span aria-hidden className="size-1.5 animate-pulse rounded-full bg-current" />
          {text('collections.countWorking', { count: working, shown: number(working) })}
        </Badge>
      )}
      {failed > 0 && <Badge tone="danger">{text('collections.countFailed', { count: failed, shown: number(failed) })}</Badge>}
    </span>
  )
}
