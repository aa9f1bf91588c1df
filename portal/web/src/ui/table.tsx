import { MoveHorizontal } from 'lucide-react'
import { type ComponentProps, type RefObject, useEffect, useRef, useState } from 'react'
import { useText } from '../i18n/text.tsx'
import { classes } from './classes.ts'

const SHADE = 'absolute inset-y-0 w-6 from-ink/15 to-transparent'

/** A table that scrolls within its own box where the screen is narrow, and says so. */
export function Table({ className, label, ...rest }: ComponentProps<'table'> & { readonly label: string }) {
  const text = useText()
  const box = useRef<HTMLElement>(null)
  const { isBefore, isAfter } = useHidden(box)
  const isWide = isBefore || isAfter
  return (
    <div>
      <div className="relative">
        <section
          ref={box}
          aria-label={label}
          // Whoever has no pointer scrolls it by the arrow keys.
          tabIndex={isWide ? 0 : undefined}
          className="relative overflow-x-auto rounded-xl border bg-surface -outline-offset-2"
        >
          <table className={classes('w-full border-collapse text-sm', className)} {...rest} />
        </section>
        {isWide && (
          <div aria-hidden className="pointer-events-none absolute inset-px overflow-hidden rounded-xl">
            {isBefore && <span className={classes(SHADE, 'start-0 bg-linear-to-r rtl:bg-linear-to-l')} />}
            {isAfter && <span className={classes(SHADE, 'end-0 bg-linear-to-l rtl:bg-linear-to-r')} />}
          </div>
        )}
      </div>
      {isWide && (
        <p className="mt-1.5 flex items-center gap-1.5 px-1 text-xs text-muted">
          <MoveHorizontal className="size-3.5 shrink-0" aria-hidden />
          {text('common.scrollTable')}
        </p>
      )}
    </div>
  )
}

/** Whether a part of what scrolls sideways is out of sight, before or after what shows. */
function useHidden(box: RefObject<HTMLElement | null>): { readonly isBefore: boolean; readonly isAfter: boolean } {
  const [hidden, setHidden] = useState({ isBefore: false, isAfter: false })
  useEffect(() => {
    const element = box.current!
    const measure = () => {
      // Negative from right to left. A fraction of a pixel is nothing.
      const scrolled = Math.abs(element.scrollLeft)
      const isBefore = scrolled > 1
      const isAfter = scrolled + element.clientWidth < element.scrollWidth - 1
      setHidden((now) => (now.isBefore === isBefore && now.isAfter === isAfter ? now : { isBefore, isAfter }))
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    observer.observe(element.firstElementChild!)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [box])
  return hidden
}

export function Th({ className, ...rest }: ComponentProps<'th'>) {
  return (
    <th
      scope="col"
      className={classes(
        'h-10 border-b bg-sunken px-3 max-md:px-2 text-start text-xs font-medium whitespace-nowrap text-muted first:ps-4 last:pe-4',
        className,
      )}
      {...rest}
    />
  )
}

export function Td({ className, ...rest }: ComponentProps<'td'>) {
  return (
    <td className={classes('h-12 border-b px-3 py-2 max-md:px-2 first:ps-4 last:pe-4 [tr:last-child>&]:border-b-0', className)} {...rest} />
  )
}
