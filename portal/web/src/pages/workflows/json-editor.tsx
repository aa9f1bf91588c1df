import { type ComponentProps, type RefObject, useImperativeHandle, useRef } from 'react'
import { Digits } from '../../parts/digits.tsx'
import { classes } from '../../ui/classes.ts'

export interface EditorHandle {
  /** Moves the cursor to a line. */
  goTo(line: number): void
}

interface JsonEditorProps extends Omit<ComponentProps<'textarea'>, 'value' | 'onChange' | 'ref'> {
  readonly value: string
  readonly onChange: (value: string) => void
  /** Lines with mistakes. */
  readonly marked: ReadonlySet<number>
  readonly handle: RefObject<EditorHandle | null>
}

/** A text field with line numbers. The Tab key leaves it, as it leaves every field. */
export function JsonEditor({ value, onChange, marked, handle, className, ...rest }: JsonEditorProps) {
  const area = useRef<HTMLTextAreaElement>(null)
  const gutter = useRef<HTMLDivElement>(null)
  const lines = value.split('\n')
  useImperativeHandle(handle, () => ({
    goTo(line) {
      const field = area.current
      if (!field) return
      const before = value.split('\n').slice(0, line - 1)
      const start = before.reduce((sum, each) => sum + each.length + 1, 0)
      field.focus()
      field.setSelectionRange(start, start + (value.split('\n')[line - 1]?.length ?? 0))
      const height = field.scrollHeight / value.split('\n').length
      field.scrollTop = Math.max(0, height * (line - 1) - field.clientHeight / 3)
    },
  }))
  return (
    <div
      dir="ltr"
      className="flex h-[min(34rem,70dvh)] overflow-hidden rounded-lg border border-line-strong/60 bg-surface font-mono text-xs leading-5 focus-within:border-accent"
    >
      <div ref={gutter} aria-hidden className="shrink-0 overflow-hidden border-e bg-sunken py-3 text-end text-muted select-none">
        {lines.map((_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number.
          <div key={index} className={classes('h-5 ps-3 pe-2', marked.has(index + 1) && 'bg-danger-soft font-semibold text-danger-text')}>
            <Digits value={index + 1} useGrouping={false} />
          </div>
        ))}
        <div className="h-8" />
      </div>
      <textarea
        ref={area}
        dir="ltr"
        wrap="off"
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        value={value}
        onChange={({ target }) => onChange(target.value)}
        onScroll={({ currentTarget }) => {
          if (gutter.current) gutter.current.scrollTop = currentTarget.scrollTop
        }}
        className={classes('min-w-0 grow resize-none overflow-auto bg-transparent p-3 leading-5 -outline-offset-2', className)}
        {...rest}
      />
    </div>
  )
}
