import { StatusBadge } from '../../parts/badges.tsx'
import { type Key, stateOf } from './keys.ts'

const BADGES = {
  active: { tone: 'success', label: 'keys.state.active' },
  expired: { tone: 'warning', label: 'keys.state.expired' },
  revoked: { tone: 'neutral', label: 'keys.state.revoked' },
} as const

export function KeyState({ apiKey }: { readonly apiKey: Pick<Key, 'revokedAt' | 'expiresAt'> }) {
  return <StatusBadge {...BADGES[stateOf(apiKey)]} />
}
