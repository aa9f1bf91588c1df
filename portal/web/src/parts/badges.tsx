import { Cloud, HardDrive, MapPin } from 'lucide-react'
import type { ReactNode } from 'react'
import { type MessageId, useText } from '../i18n/text.tsx'
import { Badge, type Tone } from '../ui/surface.tsx'
import { Tooltip } from '../ui/tooltip.tsx'

const RESIDENCIES = {
  LOCAL: { tone: 'success', icon: HardDrive },
  REGIONAL: { tone: 'info', icon: MapPin },
  CLOUD: { tone: 'warning', icon: Cloud },
} as const

/** Where data is processed. The tooltip explains it. */
export function ResidencyBadge({ residency }: { readonly residency: keyof typeof RESIDENCIES }) {
  const text = useText()
  const { tone, icon: Icon } = RESIDENCIES[residency]
  return (
    <Tooltip label={text(`residency.${residency}.help`)}>
      <Badge tone={tone} tabIndex={0}>
        <Icon className="size-3.5" aria-hidden />
        {text(`residency.${residency}`)}
      </Badge>
    </Tooltip>
  )
}

interface StatusBadgeProps {
  readonly tone: Tone
  readonly label: MessageId
  /** It is running now. */
  readonly isActive?: boolean
  readonly children?: ReactNode
}

/** A state in a word, with a dot that moves while it is running. */
export function StatusBadge({ tone, label, isActive, children }: StatusBadgeProps) {
  const text = useText()
  return (
    <Badge tone={tone}>
      <span aria-hidden className={`size-1.5 rounded-full bg-current ${isActive ? 'animate-pulse' : ''}`} />
      {text(label)}
      {children}
    </Badge>
  )
}
