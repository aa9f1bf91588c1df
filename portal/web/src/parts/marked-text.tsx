import { classes } from '../ui/classes.ts'
import { type Mark, toLines } from './marks.ts'
import { harmless } from './user-text.tsx'

interface MarkedTextProps {
  readonly text: string
  readonly marks: readonly Mark[]
  readonly className?: string
}

/** Text of a document, each line in its own direction, with highlighted parts. */
export function MarkedText({ text, marks, className }: MarkedTextProps) {
  return (
    <div className={classes('flex flex-col gap-1.5 wrap-anywhere', className)}>
      {toLines(text, marks).map(({ start, pieces }) => (
        <p key={start} dir="auto" className="whitespace-pre-wrap">
          {pieces.map(({ text, isMarked }, index) =>
            isMarked ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a line never change places.
              <mark key={index} className="rounded-xs bg-warning-soft text-warning-text">
                {harmless(text)}
              </mark>
            ) : (
              harmless(text)
            ),
          )}
        </p>
      ))}
    </div>
  )
}
