import { Tabs as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { classes } from './classes.ts'

interface TabsProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly onChange: (value: Value) => void
  readonly tabs: readonly { readonly value: Value; readonly label: ReactNode; readonly content: ReactNode }[]
  readonly className?: string
}

/**
 * Scrolls the shown tab into sight if the tabs are wider than the screen. Runs after the frame: before it, the page
 * would be laid out twice.
 */
function bringIntoSight(tab: HTMLElement | null): void {
  if (tab) requestAnimationFrame(() => setTimeout(() => tab.scrollIntoView({ block: 'nearest', inline: 'nearest' })))
}

/** Views of one object. Only the shown one is mounted: the first, if the address names an unknown one. */
export function Tabs<Value extends string>({ label, value, onChange, tabs, className }: TabsProps<Value>) {
  const shown = tabs.some((tab) => tab.value === value) ? value : tabs[0]?.value
  return (
    <Radix.Root value={shown} onValueChange={(value) => onChange(value as Value)} className={className}>
      <Radix.List aria-label={label} className="flex overflow-x-auto border-b sm:gap-1">
        {tabs.map(({ value, label }) => (
          <Radix.Trigger
            key={value}
            value={value}
            ref={value === shown ? bringIntoSight : undefined}
            className={classes(
              'relative h-10 shrink-0 rounded-t-md px-2.5 text-sm sm:px-3 text-muted -outline-offset-2 hover:text-ink data-[state=active]:font-medium data-[state=active]:text-ink',
              'after:absolute after:inset-x-2 after:bottom-0 after:h-0.5 after:rounded-full data-[state=active]:after:bg-accent',
            )}
          >
            {label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map(({ value, content }) => (
        <Radix.Content key={value} value={value} className="pt-5">
          {content}
        </Radix.Content>
      ))}
    </Radix.Root>
  )
}
