import { Progress as RadixProgress } from 'radix-ui'
import type { ComponentProps, ReactNode } from 'react'
import { classes } from './classes.ts'

/** `as`: `div` for a group in a definition list, which may contain no section. */
export function Card({ as: Element = 'section', className, ...rest }: ComponentProps<'div'> & { readonly as?: 'section' | 'div' }) {
  return <Element className={classes('rounded-xl border bg-surface p-4 sm:p-5', className)} {...rest} />
}

const TONES = {
  neutral: 'bg-sunken text-muted border-line',
  accent: 'bg-accent-soft text-accent-text border-transparent',
  success: 'bg-success-soft text-success-text border-transparent',
  warning: 'bg-warning-soft text-warning-text border-transparent',
  danger: 'bg-danger-soft text-danger-text border-transparent',
  info: 'bg-info-soft text-info-text border-transparent',
} as const

export type Tone = keyof typeof TONES

export function Badge({ tone = 'neutral', className, ...rest }: ComponentProps<'span'> & { readonly tone?: Tone }) {
  return (
    <span
      className={classes(
        'inline-flex max-w-full items-center gap-1 rounded-md border px-1.5 py-0.5 text-xs font-medium whitespace-nowrap',
        TONES[tone],
        className,
      )}
      {...rest}
    />
  )
}

/** A placeholder. Its parent says in words that it loads. */
export function Skeleton({ className }: { readonly className?: string }) {
  return <div aria-hidden className={classes('h-4 animate-pulse rounded-md bg-hover', className)} />
}

interface ProgressProps {
  /** What makes progress. */
  readonly label: string
  /** 0 to 1; null: unknown. */
  readonly value: number | null
  readonly tone?: 'accent' | 'warning' | 'danger'
}

export function Progress({ label, value, tone = 'accent' }: ProgressProps) {
  const share = value === null ? null : Math.min(Math.max(value, 0), 1)
  return (
    <RadixProgress.Root
      aria-label={label}
      value={share === null ? null : Math.round(share * 100)}
      className="h-1.5 w-full overflow-hidden rounded-full bg-hover"
    >
      <RadixProgress.Indicator
        className={classes(
          'h-full rounded-full transition-[width]',
          { accent: 'bg-accent', warning: 'bg-warning-text', danger: 'bg-danger' }[tone],
          share === null && 'animate-pulse',
        )}
        style={{ width: share === null ? '100%' : `${share * 100}%` }}
      />
    </RadixProgress.Root>
  )
}

/** A box with a remark about its context. */
export function Notice({
  tone = 'info',
  icon,
  children,
  actions,
}: {
  readonly tone?: Tone
  readonly icon?: ReactNode
  readonly children: ReactNode
  readonly actions?: ReactNode
}) {
  return (
    <div
      role={tone === 'danger' ? 'alert' : 'status'}
      className={classes('flex flex-wrap items-center gap-3 rounded-lg border px-3 py-2.5 text-sm', TONES[tone])}
    >
      {icon}
      <div className="min-w-0 grow basis-40 wrap-anywhere">{children}</div>
      {actions}
    </div>
  )
}
