import { classes } from '../ui/classes.ts'

/** Controls that change the direction of what follows. A name that holds them must not turn the page round. */
const OVERRIDES = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g

/** The same text without what could turn round the text beside it. */
export function harmless(text: string): string {
  return text.replace(OVERRIDES, '')
}

/** Text that people wrote: kept apart from the direction around it, cut where it is too long, whole in its title. */
export function UserText({
  children,
  className,
  isWhole,
}: {
  readonly children: string
  readonly className?: string
  readonly isWhole?: boolean
}) {
  const shown = harmless(children)
  return (
    <bdi
      dir="auto"
      title={isWhole ? undefined : shown}
      className={classes(isWhole ? 'wrap-anywhere whitespace-pre-wrap' : 'cut', className)}
    >
      {shown}
    </bdi>
  )
}

/** Ids, codes and keys, which read from left to right everywhere. */
export function Code({ children, className }: { readonly children: string; readonly className?: string }) {
  return (
    <code dir="ltr" title={children} className={classes('inline-block max-w-full truncate align-bottom font-mono text-[0.9em]', className)}>
      {children}
    </code>
  )
}
