import { ChevronDown } from 'lucide-react'
import type { ComponentProps } from 'react'
import { classes } from './classes.ts'

const FIELD = classes(
  'w-full rounded-lg border border-line-strong/60 bg-surface text-ink shadow-xs transition-colors hover:border-line-strong',
  'focus-visible:border-accent focus-visible:outline-offset-0',
  'disabled:cursor-not-allowed disabled:bg-sunken disabled:text-muted aria-invalid:border-danger',
)

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  const { inputMode } = rest
  // A number is left to right with its sign, and aligned with the start of the page's lines.
  const isNumber = inputMode === 'numeric' || inputMode === 'decimal'
  return (
    <input
      dir={isNumber ? 'ltr' : 'auto'}
      className={classes(FIELD, 'h-9 px-3 text-sm max-sm:text-base', isNumber && 'rtl:text-end', className)}
      {...rest}
    />
  )
}

export function Textarea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea dir="auto" rows={4} className={classes(FIELD, 'px-3 py-2 text-sm max-sm:text-base', className)} {...rest} />
}

export interface Option<Value extends string = string> {
  readonly value: Value
  readonly label: string
  readonly isDisabled?: boolean
}

interface SelectProps<Value extends string> extends Omit<ComponentProps<'select'>, 'value' | 'onChange'> {
  readonly value: Value
  readonly onChange: (value: Value) => void
  readonly options: readonly Option<Value>[]
}

/** The platform's own list: it works by touch, keyboard and voice in both directions. */
export function Select<Value extends string>({ value, onChange, options, className, ...rest }: SelectProps<Value>) {
  return (
    <span className={classes('relative inline-flex w-full', className)}>
      <select
        value={value}
        onChange={(event) => onChange(event.target.value as Value)}
        className={classes(FIELD, 'h-9 appearance-none truncate ps-3 pe-8 text-sm max-sm:text-base')}
        {...rest}
      >
        {options.map(({ value, label, isDisabled }) => (
          <option key={value} value={value} disabled={isDisabled}>
            {label}
          </option>
        ))}
      </select>
      <ChevronDown className="pointer-events-none absolute inset-y-0 end-2.5 my-auto size-4 text-muted" aria-hidden />
    </span>
  )
}
