import { AudioLines, Bot, GitBranch, type LucideIcon, MessageSquare, Repeat, Search, TextQuote } from 'lucide-react'
import { useEffect, useState } from 'react'
import { StatusBadge } from '../../parts/badges.tsx'
import { Digits } from '../../parts/digits.tsx'
import type { NodeType } from './rules/definition.ts'
import type { NodeState, RunStatus } from './runs.ts'

const RUNS = {
  RUNNING: { tone: 'info', label: 'workflows.status.RUNNING', isActive: true },
  COMPLETED: { tone: 'success', label: 'workflows.status.COMPLETED' },
  FAILED: { tone: 'danger', label: 'workflows.status.FAILED' },
  CANCELLED: { tone: 'neutral', label: 'workflows.status.CANCELLED' },
} as const

export function RunBadge({ status }: { readonly status: RunStatus }) {
  return <StatusBadge {...RUNS[status]} />
}

const NODES = {
  PENDING: { tone: 'neutral', label: 'workflows.state.PENDING' },
  RUNNING: { tone: 'info', label: 'workflows.state.RUNNING', isActive: true },
  DONE: { tone: 'success', label: 'workflows.state.DONE' },
  FAILED: { tone: 'danger', label: 'workflows.state.FAILED' },
  SKIPPED: { tone: 'neutral', label: 'workflows.state.SKIPPED' },
} as const

export function NodeBadge({ state }: { readonly state: NodeState }) {
  return <StatusBadge {...NODES[state]} />
}

export const TYPE_ICONS: Readonly<Record<NodeType, LucideIcon>> = {
  chat: MessageSquare,
  agent: Bot,
  search: Search,
  transcribe: AudioLines,
  template: TextQuote,
  branch: GitBranch,
  map: Repeat,
}

const MINUTE = 60
const HOUR = 60 * MINUTE

interface DurationProps {
  readonly from: string | null
  /** Null: still running. */
  readonly to: string | null
  /** It has ended, even if its end time is unknown. */
  readonly isOver?: boolean
}

/** How long something took, or has taken so far. */
export function Duration({ from, to, isOver }: DurationProps) {
  const [now, setNow] = useState(Date.now)
  const isGoing = from !== null && to === null && !isOver
  useEffect(() => {
    if (!isGoing) return
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [isGoing])
  if (from === null || (to === null && isOver)) return <span aria-hidden>—</span>
  const seconds = Math.max(0, ((to === null ? now : Date.parse(to)) - Date.parse(from)) / 1_000)
  const [unit, length] =
    seconds >= HOUR ? (['hour', HOUR] as const) : seconds >= MINUTE ? (['minute', MINUTE] as const) : (['second', 1] as const)
  const fractionDigits = to === null && unit === 'second' ? 0 : seconds < 1 ? 2 : 1
  return <Digits value={seconds / length} style="unit" unit={unit} unitDisplay="short" maximumFractionDigits={fractionDigits} />
}
