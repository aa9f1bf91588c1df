import { ChevronLeft, ChevronRight } from 'lucide-react'
import { useText } from '../i18n/text.tsx'
import { Button } from './button.tsx'

interface PaginationProps {
  readonly onNewer: (() => void) | null
  readonly onOlder: (() => void) | null
  readonly isBusy?: boolean
}

/** Buttons of a list that is paged by cursors. Null: there is no such page. */
export function Pagination({ onNewer, onOlder, isBusy }: PaginationProps) {
  const text = useText()
  if (!onNewer && !onOlder) return null
  return (
    <nav aria-label={text('common.pages')} aria-busy={isBusy} className="mt-3 flex items-center justify-end gap-2">
      <Button size="small" disabled={!onNewer} onClick={onNewer ?? undefined}>
        <ChevronLeft className="size-4 rtl:-scale-x-100" aria-hidden />
        {text('common.previous')}
      </Button>
      <Button size="small" disabled={!onOlder} onClick={onOlder ?? undefined}>
        {text('common.next')}
        <ChevronRight className="size-4 rtl:-scale-x-100" aria-hidden />
      </Button>
    </nav>
  )
}
