import { StatusBadge } from '../../parts/badges.tsx'
import type { Endpoint } from './webhooks.ts'

/** Whether an endpoint receives events, and if not, whether a person or the service disabled it. */
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
