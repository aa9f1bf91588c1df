import { useText } from '../../i18n/text.tsx'
import { Badge } from '../../ui/surface.tsx'
import { ABILITIES } from './filters.ts'
import type { Model } from './models.ts'

export function Abilities({ model }: { readonly model: Model }) {
  const text = useText()
  return (
    <span className="flex flex-wrap gap-1">
      {ABILITIES.filter((ability) => model[ability]).map((ability) => (
        <Badge key={ability}>{text(`models.${ability}`)}</Badge>
      ))}
    </span>
  )
}
