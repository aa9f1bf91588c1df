import { useFormats, useText } from '../../../i18n/text.tsx'
import type { PageBoxes } from './document.ts'

/** A page as a sheet of paper, with the lines of the chunk at their positions. Paper is white in both themes. */
export function PageSketch({ page: { page, width, height, boxes } }: { readonly page: PageBoxes }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <figure className="w-28">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={text('document.sketch', { page: number(page) })}
        className="w-full rounded-sm border bg-white shadow-xs"
      >
        {boxes.map(({ x, y, width, height }) => (
          <rect key={`${x} ${y}`} x={x} y={y} width={width} height={height} rx={Math.min(height / 4, 4)} className="fill-[#0f766e]/55" />
        ))}
      </svg>
      <figcaption className="mt-1 text-center text-xs text-muted">{text('document.page', { page: number(page) })}</figcaption>
    </figure>
  )
}
