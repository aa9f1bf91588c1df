import type { ComponentProps } from 'react'
import { classes } from './classes.ts'

/** A table that scrolls within its own box where the screen is narrow. */
export function Table({ className, label, ...rest }: ComponentProps<'table'> & { readonly label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no pointer scrolls it by the arrow keys.
    <section aria-label={label} tabIndex={0} className="relative overflow-x-auto rounded-xl border bg-surface -outline-offset-2">
      <table className={classes('w-full border-collapse text-sm', className)} {...rest} />
    </section>
  )
}

export function Th({ className, ...rest }: ComponentProps<'th'>) {
  return (
    <th
      scope="col"
      className={classes(
        'h-10 border-b bg-sunken px-3 text-start text-xs font-medium whitespace-nowrap text-muted first:ps-4 last:pe-4',
        className,
      )}
      {...rest}
    />
  )
}

export function Td({ className, ...rest }: ComponentProps<'td'>) {
  return <td className={classes('h-12 border-b px-3 py-2 first:ps-4 last:pe-4 [tr:last-child>&]:border-b-0', className)} {...rest} />
}
