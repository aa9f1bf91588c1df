import { ChevronDown, LoaderCircle, type LucideIcon } from 'lucide-react'
import { Slot } from 'radix-ui'
import type { ComponentProps } from 'react'
import { classes } from './classes.ts'
import { Tooltip } from './tooltip.tsx'

const VARIANTS = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-hover',
  secondary: 'border border-line bg-raised text-ink hover:bg-hover',
  ghost: 'text-ink hover:bg-hover',
  danger: 'bg-danger text-danger-ink hover:bg-danger-hover',
} as const

const SIZES = {
  small: 'h-8 gap-1.5 px-2.5 text-sm',
  medium: 'h-9 gap-2 px-3.5 text-sm',
  large: 'h-11 gap-2 px-5',
} as const

interface ButtonProps extends ComponentProps<'button'> {
  readonly variant?: keyof typeof VARIANTS
  readonly size?: keyof typeof SIZES
  readonly icon?: LucideIcon
  /** Shows that it works, and takes no click. */
  readonly isBusy?: boolean
  /** Gives the look to its only child, such as a link. */
  readonly asChild?: boolean
}

export function Button({ variant = 'secondary', size = 'medium', icon: Icon, isBusy, asChild, className, children, ...rest }: ButtonProps) {
  const buttonClasses = classes(
    'inline-flex shrink-0 items-center justify-center rounded-lg font-medium whitespace-nowrap transition-colors select-none',
    'disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55',
    VARIANTS[variant],
    SIZES[size],
    className,
  )
  if (asChild) {
    return (
      <Slot.Root className={buttonClasses} {...rest}>
        {children}
      </Slot.Root>
    )
  }
  return (
    <button type="button" className={buttonClasses} aria-busy={isBusy} {...rest} disabled={rest.disabled || isBusy}>
      {isBusy ? <LoaderCircle className="size-4 animate-spin" aria-hidden /> : Icon && <Icon className="size-4" aria-hidden />}
      {children}
    </button>
  )
}

interface DisclosureButtonProps extends Omit<ButtonProps, 'asChild' | 'isBusy' | 'onClick' | 'onToggle'> {
  readonly isOpen: boolean
  readonly onToggle: (isOpen: boolean) => void
}

/** Opens and closes what is below it. Name that by `aria-controls`. */
export function DisclosureButton({ isOpen, onToggle, children, ...rest }: DisclosureButtonProps) {
  return (
    <Button variant="ghost" size="small" aria-expanded={isOpen} onClick={() => onToggle(!isOpen)} {...rest}>
      {children}
      <ChevronDown className={classes('size-4 text-muted transition-transform', isOpen && 'rotate-180')} aria-hidden />
    </Button>
  )
}

interface IconButtonProps extends Omit<ButtonProps, 'icon' | 'children' | 'asChild'> {
  /** What it does: its name for screen readers, and its tooltip. */
  readonly label: string
  readonly icon: LucideIcon
  /** The icon points along the line of text, so it turns round from right to left. */
  readonly mirrors?: boolean
}

export function IconButton({
  label,
  icon: Icon,
  mirrors,
  variant = 'ghost',
  size = 'medium',
  isBusy,
  className,
  ...rest
}: IconButtonProps) {
  const side = { small: 'size-8', medium: 'size-9', large: 'size-11' }[size]
  return (
    <Tooltip label={label}>
      <Button variant={variant} size={size} aria-label={label} aria-busy={isBusy} className={classes('px-0', side, className)} {...rest}>
        {isBusy ? (
          <LoaderCircle className="size-4 animate-spin" aria-hidden />
        ) : (
          <Icon className={classes('size-4', mirrors && 'rtl:-scale-x-100')} aria-hidden />
        )}
      </Button>
    </Tooltip>
  )
}
