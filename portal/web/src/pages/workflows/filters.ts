import { readText } from '../../data/search-params.ts'

/** The state of a workflow's page in its address, so that a link shows the same. */
export interface WorkflowSearch {
  readonly tab?: Tab
  /** The node whose details are open. */
  readonly node?: string
  readonly status?: (typeof STATUSES)[number]
  /** The open version. */
  readonly version?: number
  /** The run whose inputs fill the form. */
  readonly from?: string
}

interface RunSearch {
  readonly node?: string
}

const TABS = ['graph', 'editor', 'run', 'runs', 'versions'] as const
export type Tab = (typeof TABS)[number]
export const STATUSES = ['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const

export function readWorkflowSearch({ tab, node, status, version, from }: Readonly<Record<string, unknown>>): WorkflowSearch {
  return {
    tab: TABS.find((each) => each === tab),
    node: readText(node),
    status: STATUSES.find((each) => each === status),
    version: Number.isInteger(version) && (version as number) > 0 ? (version as number) : undefined,
    from: readText(from),
  }
}

export function readRunSearch({ node }: Readonly<Record<string, unknown>>): RunSearch {
  return { node: readText(node) }
}
