import { classes } from '../ui/classes.ts'

/** Controls that change the direction of the text after them. A name with such controls must not reverse the page. */
const OVERRIDES = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g

/** Returns the text without the controls that could reverse the text beside it. */
export function harmless(text: string): string {
  return text.replace(OVERRIDES, '')
}

/** Text that people wrote: isolated from the direction around it, truncated if too long, complete in its title. */
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

/** IDs, codes and keys, which are left to right everywhere. */
export function Code({ children, className }: { readonly children: string; readonly className?: string }) {
  return (
    <code dir="ltr" title={children} className={classes('inline-block max-w-full truncate align-bottom font-mono text-[0.9em]', className)}>
      {children}
    </code>
  )
}
