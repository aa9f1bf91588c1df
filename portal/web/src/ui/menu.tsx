import { Check, type LucideIcon } from 'lucide-react'
import { DropdownMenu as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { classes } from './classes.ts'

const ITEM = classes(
  'flex min-h-8 cursor-pointer items-center gap-2.5 rounded-md px-2 py-1 text-sm outline-none select-none',
  'data-[disabled]:cursor-not-allowed data-[disabled]:opacity-55 data-[highlighted]:bg-hover',
)

/** A menu at its trigger, which is a button. */
export function Menu({
  trigger,
  children,
  align = 'end',
}: {
  readonly trigger: ReactNode
  readonly children: ReactNode
  readonly align?: 'start' | 'end'
}) {
  return (
    // A modal menu hides the page from screen readers, although elements of it can have the focus.
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-48 animate-rise overflow-y-auto rounded-xl border bg-raised p-1.5 shadow-raised"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

interface MenuItemProps {
  readonly icon?: LucideIcon
  readonly onSelect?: () => void
  readonly isDangerous?: boolean
  readonly isDisabled?: boolean
  readonly children: ReactNode
  readonly asChild?: boolean
}

export function MenuItem({ icon: Icon, onSelect, isDangerous, isDisabled, children, asChild }: MenuItemProps) {
  return (
    <Radix.Item disabled={isDisabled} asChild={asChild} onSelect={onSelect} className={classes(ITEM, isDangerous && 'text-danger-text')}>
      {asChild ? (
        children
      ) : (
        <>
          {Icon && <Icon className="size-4 text-muted" aria-hidden />}
          {children}
        </>
      )}
    </Radix.Item>
  )
}

export function MenuSeparator() {
  return <Radix.Separator className="-mx-1.5 my-1.5 h-px bg-line" />
}

interface MenuChoiceProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly onChange: (value: Value) => void
  readonly options: readonly { readonly value: Value; readonly label: ReactNode }[]
}

/** One of several values, in a menu. */
export function MenuChoice<Value extends string>({ label, value, onChange, options }: MenuChoiceProps<Value>) {
  return (
    <Radix.RadioGroup value={value} onValueChange={(value) => onChange(value as Value)} aria-label={label}>
      <Radix.Label className="px-2 pt-1.5 pb-1 text-xs font-medium text-muted">{label}</Radix.Label>
      {options.map(({ value, label }) => (
        <Radix.RadioItem key={value} value={value} className={classes(ITEM, 'ps-8 relative')} onSelect={(event) => event.preventDefault()}>
          <Radix.ItemIndicator className="absolute start-2">
            <Check className="size-4 text-accent-text" aria-hidden />
          </Radix.ItemIndicator>
          {label}
        </Radix.RadioItem>
      ))}
    </Radix.RadioGroup>
  )
}
