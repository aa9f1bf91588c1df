import { Check, ChevronsUpDown } from 'lucide-react'
import { Popover } from 'radix-ui'
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { useText } from '../i18n/text.tsx'
import { classes } from './classes.ts'
import type { FieldControl } from './field.tsx'
import type { Option } from './input.tsx'

const MAX_SHOWN = 100

interface ComboboxProps extends Partial<FieldControl> {
  readonly values: readonly string[]
  readonly onChange: (values: readonly string[]) => void
  readonly options: readonly Option[]
  /** More than one may be chosen. */
  readonly isMultiple?: boolean
  readonly placeholder: string
  readonly disabled?: boolean
}

/** Chooses from a list by typing a part of the name. */
export function Combobox({ values, onChange, options, isMultiple, placeholder, disabled, ...control }: ComboboxProps) {
  const text = useText()
  const listId = useId()
  const [isOpen, setOpen] = useState(false)
  const [query, setQuery] = useState('')
  const [active, setActive] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const matches = options
    .filter(({ label, value }) => `${label} ${value}`.toLocaleLowerCase().includes(query.trim().toLocaleLowerCase()))
    .slice(0, MAX_SHOWN)
  const labels = values.map((value) => options.find((each) => each.value === value)?.label ?? value)

  const open = (next: boolean) => {
    setOpen(next)
    setQuery('')
    setActive(0)
  }
  const choose = ({ value, isDisabled }: Option) => {
    if (isDisabled) return
    if (!isMultiple) {
      onChange([value])
      open(false)
    } else onChange(values.includes(value) ? values.filter((each) => each !== value) : [...values, value])
  }
  const move = (to: number) => {
    const next = Math.min(Math.max(to, 0), matches.length - 1)
    setActive(next)
    list.current?.children[next]?.scrollIntoView({ block: 'nearest' })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') move(active + 1)
    else if (event.key === 'ArrowUp') move(active - 1)
    else if (event.key === 'Enter' && matches[active]) choose(matches[active])
    else return
    event.preventDefault()
  }

  return (
    <Popover.Root open={isOpen} onOpenChange={open}>
      <Popover.Trigger
        {...control}
        // The value of this element is the choice. A button could not be required.
        role="combobox"
        disabled={disabled}
        className="flex min-h-9 w-full items-center gap-2 rounded-lg border border-line-strong/60 bg-surface px-3 py-1 text-start text-sm shadow-xs hover:border-line-strong disabled:cursor-not-allowed disabled:bg-sunken aria-invalid:border-danger"
      >
        <span className={classes('min-w-0 grow truncate text-start', labels.length === 0 && 'text-muted')}>
          <bdi>{labels.length === 0 ? placeholder : labels.join(text('common.listSeparator'))}</bdi>
        </span>
        <ChevronsUpDown className="size-4 shrink-0 text-muted" aria-hidden />
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          sideOffset={6}
          collisionPadding={8}
          className="z-50 w-(--radix-popover-trigger-width) min-w-56 animate-rise rounded-xl border bg-raised p-1.5 shadow-raised"
        >
          <input
            role="combobox"
            aria-label={placeholder}
            aria-expanded
            aria-controls={listId}
            aria-activedescendant={matches[active] && `${listId}-${active}`}
            dir="auto"
            value={query}
            placeholder={text('common.search')}
            onChange={(event) => {
              setQuery(event.target.value)
              setActive(0)
            }}
            onKeyDown={onKeyDown}
            className="mb-1.5 h-9 w-full rounded-md border bg-surface px-2.5 text-sm max-sm:text-base"
          />
          <div
            ref={list}
            id={listId}
            role="listbox"
            tabIndex={-1}
            aria-label={placeholder}
            aria-multiselectable={isMultiple}
            className="max-h-64 overflow-y-auto"
          >
            {matches.map((option, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the keys go to the input above.
              <div
                key={option.value}
                id={`${listId}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={values.includes(option.value)}
                aria-disabled={option.isDisabled}
                onClick={() => choose(option)}
                onPointerMove={() => setActive(index)}
                className={classes(
                  'flex min-h-8 cursor-pointer items-center gap-2 rounded-md px-2 py-1 text-sm aria-disabled:cursor-not-allowed aria-disabled:opacity-55',
                  index === active && 'bg-hover',
                )}
              >
                <Check className={classes('size-4 shrink-0 text-accent-text', !values.includes(option.value) && 'invisible')} aria-hidden />
                <bdi className="truncate">{option.label}</bdi>
              </div>
            ))}
          </div>
          {matches.length === 0 && <p className="px-2 py-3 text-sm text-muted">{text('common.nothingMatches')}</p>}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  )
}
