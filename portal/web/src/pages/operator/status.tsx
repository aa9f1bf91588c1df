import { StatusBadge } from '../../parts/badges.tsx'
import type { Tone } from '../../ui/surface.tsx'
import type { STATUSES } from './filters.ts'

type Status = (typeof STATUSES)[number]

const TONES: Readonly<Record<Status, Tone>> = { ACTIVE: 'success', SUSPENDED: 'warning', DELETING: 'danger', DELETED: 'neutral' }

export function OrganizationStatus({ status }: { readonly status: Status }) {
  return <StatusBadge tone={TONES[status]} label={`operator.status.${status}`} isActive={status === 'DELETING'} />
}
