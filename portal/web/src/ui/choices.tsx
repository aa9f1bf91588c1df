import { Check } from 'lucide-react'
import { Checkbox as RadixCheckbox, RadioGroup as RadixRadio, Switch as RadixSwitch } from 'radix-ui'
import { type ReactNode, useId } from 'react'
import { classes } from './classes.ts'

interface ChoiceProps {
  readonly label: ReactNode
  readonly help?: ReactNode
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
  readonly disabled?: boolean
  /** The label is for screen readers only. */
  readonly isLabelHidden?: boolean
}

function Labelled({
  id,
  label,
  help,
  isLabelHidden,
  children,
}: Pick<ChoiceProps, 'label' | 'help' | 'isLabelHidden'> & { id: string; children: ReactNode }) {
  return (
    <div className="flex min-h-6 items-start gap-2.5">
      {children}
      <label htmlFor={id} className={isLabelHidden ? 'sr-only' : 'text-sm'}>
        {label}
        {help && <span className="block text-muted">{help}</span>}
      </label>
    </div>
  )
}

export function Checkbox({ label, help, checked, onChange, disabled, isLabelHidden }: ChoiceProps) {
  const id = useId()
  return (
    <Labelled {...{ id, label, help, isLabelHidden }}>
      <RadixCheckbox.Root
        id={id}
        checked={checked}
        disabled={disabled}
        onCheckedChange={(value) => onChange(value === true)}
        className="relative mt-0.5 flex size-5 shrink-0 items-center justify-center rounded-md border border-line-strong bg-surface after:absolute after:-inset-1 disabled:opacity-55 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
      >
        <RadixCheckbox.Indicator>
          <Check className="size-3.5 text-accent-ink" strokeWidth={3} aria-hidden />
        </RadixCheckbox.Indicator>
      </RadixCheckbox.Root>
    </Labelled>
  )
}

export function Switch({ label, help, checked, onChange, disabled, isLabelHidden }: ChoiceProps) {
  const id = useId()
  return (
    <Labelled {...{ id, label, help, isLabelHidden }}>
      <RadixSwitch.Root
        id={id}
        checked={checked}
        disabled={disabled}
        onCheckedChange={onChange}
        className="relative h-6 w-10 shrink-0 rounded-full bg-line-strong p-0.5 transition-colors disabled:opacity-55 data-[state=checked]:bg-accent"
      >
        <RadixSwitch.Thumb className="block size-5 rounded-full bg-white shadow transition-transform data-[state=checked]:translate-x-4 rtl:data-[state=checked]:-translate-x-4" />
      </RadixSwitch.Root>
    </Labelled>
  )
}

interface RadioGroupProps<Value extends string> {
  /** The question that the choices answer, for screen readers. */
  readonly label: string
  readonly value: Value
  readonly onChange: (value: Value) => void
  readonly options: readonly { readonly value: Value; readonly label: ReactNode; readonly help?: ReactNode }[]
  readonly className?: string
}

export function RadioGroup<Value extends string>({ label, value, onChange, options, className }: RadioGroupProps<Value>) {
  const id = useId()
  return (
    <RadixRadio.Root
      aria-label={label}
      value={value}
      onValueChange={(value) => onChange(value as Value)}
      className={classes('flex flex-col gap-2.5', className)}
    >
      {options.map(({ value, label, help }) => (
        <Labelled key={value} id={`${id}-${value}`} label={label} help={help}>
          <RadixRadio.Item
            id={`${id}-${value}`}
            value={value}
            className="relative mt-0.5 flex size-5 shrink-0 items-center justify-center rounded-full border border-line-strong bg-surface after:absolute after:-inset-1 data-[state=checked]:border-accent"
          >
            <RadixRadio.Indicator className="size-2.5 rounded-full bg-accent" />
          </RadixRadio.Item>
        </Labelled>
      ))}
    </RadixRadio.Root>
  )
}
