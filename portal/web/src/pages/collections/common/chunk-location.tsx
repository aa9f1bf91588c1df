import { useFormats, useText } from '../../../i18n/text.tsx'
import { UserText } from '../../../parts/user-text.tsx'

interface ChunkLocationProps {
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
}

/** Where a passage stands: its page, and the headings above it. */
export function ChunkLocation({ headingPath, pageStart, pageEnd }: ChunkLocationProps) {
  const text = useText()
  const { number } = useFormats()
  if (pageStart === null && headingPath.length === 0) return null
  return (
    <span className="flex min-w-0 flex-wrap items-baseline gap-x-2 text-xs text-muted">
      {pageStart !== null && (
        <span className="whitespace-nowrap">
          {pageEnd === null || pageEnd === pageStart
            ? text('document.page', { page: number(pageStart) })
            : text('document.pageRange', { from: number(pageStart), to: number(pageEnd) })}
        </span>
      )}
      {headingPath.map((heading, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: headings may repeat, and never change places.
        <span key={index} className="inline-flex min-w-0 max-w-full items-baseline gap-2">
          {(index > 0 || pageStart !== null) && (
            <span aria-hidden className="rtl:-scale-x-100">
              ›
            </span>
          )}
          <UserText className="max-w-60">{heading}</UserText>
        </span>
      ))}
    </span>
  )
}
