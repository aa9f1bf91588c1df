import { StatusBadge } from '../../../parts/badges.tsx'
import type { RunStatus } from '../base/search.ts'

const BADGES = {
  RUNNING: { tone: 'info', label: 'agents.status.RUNNING', isActive: true },
  COMPLETED: { tone: 'success', label: 'agents.status.COMPLETED' },
  FAILED: { tone: 'danger', label: 'agents.status.FAILED' },
  CANCELLED: { tone: 'neutral', label: 'agents.status.CANCELLED' },
} as const

export function RunStatusBadge({ status }: { readonly status: RunStatus }) {
  return <StatusBadge {...BADGES[status]} />
}
