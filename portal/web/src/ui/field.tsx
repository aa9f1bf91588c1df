import { type ReactNode, useId } from 'react'
import { classes } from './classes.ts'

export interface FieldControl {
  readonly id: string
  readonly 'aria-describedby'?: string
  readonly 'aria-invalid'?: true
  readonly 'aria-required'?: true
}

interface FieldProps {
  readonly label: ReactNode
  readonly help?: ReactNode
  /** The problem, and how to fix it. */
  readonly error?: ReactNode
  readonly isRequired?: boolean
  readonly className?: string
  /** Renders the input. Spread `control` onto it. */
  readonly children: (control: FieldControl) => ReactNode
}

/** An input with its label, help and error, linked for screen readers. */
export function Field({ label, help, error, isRequired, className, children }: FieldProps) {
  const id = useId()
  const describedBy = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className={classes('flex flex-col gap-1.5', className)}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        ...(describedBy && { 'aria-describedby': describedBy }),
        ...(error ? { 'aria-invalid': true } : {}),
        ...(isRequired ? { 'aria-required': true } : {}),
      })}
      {help && (
        <p id={`${id}-help`} className="text-sm text-muted">
          {help}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} role="alert" className="text-sm text-danger-text">
          {error}
        </p>
      )}
    </div>
  )
}
