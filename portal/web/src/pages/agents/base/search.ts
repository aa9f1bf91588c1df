import { readText } from '../../../data/search-params.ts'

/** The state of an agent's page in its address, so that a link shows the same. */
interface AgentSearch {
  readonly tab?: Tab
  /** The open stored conversation. */
  readonly thread?: string
  /** The open run; in the chat, the run in progress. */
  readonly run?: string
  readonly status?: RunStatus
  /** Two versions that are compared. */
  readonly from?: number
  readonly to?: number
}

const TABS = ['chat', 'runs', 'settings', 'use'] as const
type Tab = (typeof TABS)[number]
export const RUN_STATUSES = ['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export function readSearch(search: Readonly<Record<string, unknown>>): AgentSearch {
  const version = (value: unknown) => (Number.isInteger(value) && (value as number) > 0 ? (value as number) : undefined)
  return {
    tab: TABS.find((tab) => tab === search.tab),
    thread: readText(search.thread),
    run: readText(search.run),
    status: RUN_STATUSES.find((status) => status === search.status),
    from: version(search.from),
    to: version(search.to),
  }
}
