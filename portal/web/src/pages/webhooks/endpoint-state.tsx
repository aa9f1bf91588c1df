import { StatusBadge } from '../../parts/badges.tsx'
import type { Endpoint } from './webhooks.ts'

/** Whether an endpoint hears of events, and if not, whether somebody or the service switched it off. */
export function EndpointState({ endpoint }: { readonly endpoint: Pick<Endpoint, 'isActive' | 'disabledReason' | 'failingSince'> }) {
  const { isActive, disabledReason, failingSince } = endpoint
  if (!isActive) {
    return disabledReason ? (
      <StatusBadge tone="danger" label="webhooks.state.disabled" />
    ) : (
      <StatusBadge tone="neutral" label="webhooks.state.off" />
    )
  }
  return failingSince ? (
    <StatusBadge tone="warning" label="webhooks.state.failing" />
  ) : (
    <StatusBadge tone="success" label="webhooks.state.on" />
  )
}
