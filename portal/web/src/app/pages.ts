import {
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  Gauge,
  House,
  KeyRound,
  LibraryBig,
  type LucideIcon,
  Users,
  Wallet,
  Webhook,
  Workflow,
} from 'lucide-react'
import type { MessageId } from '../i18n/text.tsx'
import type { Scope } from './session.tsx'

interface PageEntry {
  readonly path: `/${string}`
  readonly title: MessageId
  readonly icon: LucideIcon
  /** The scopes that are needed to open the page. */
  readonly scopes: readonly Scope[]
}

/** The pages, in the order of the navigation, by group. */
export const PAGE_GROUPS = [
  [
    { path: '/home', title: 'home.title', icon: House, scopes: [] },
    { path: '/collections', title: 'collections.title', icon: LibraryBig, scopes: ['KNOWLEDGE_READ'] },
    { path: '/agents', title: 'agents.title', icon: Bot, scopes: ['AGENTS'] },
    { path: '/workflows', title: 'workflows.title', icon: Workflow, scopes: ['AGENTS'] },
    { path: '/models', title: 'models.title', icon: Boxes, scopes: ['INFERENCE'] },
  ],
  [
    { path: '/usage', title: 'usage.title', icon: ChartColumn, scopes: ['BILLING_READ'] },
    { path: '/wallet', title: 'wallet.title', icon: Wallet, scopes: ['BILLING_READ'] },
  ],
  [
    { path: '/keys', title: 'keys.title', icon: KeyRound, scopes: ['ADMIN'] },
    { path: '/webhooks', title: 'webhooks.title', icon: Webhook, scopes: ['ADMIN'] },
    { path: '/organization', title: 'organization.title', icon: Building2, scopes: [] },
    { path: '/people', title: 'people.title', icon: Users, scopes: ['ADMIN'] },
    { path: '/operator', title: 'operator.title', icon: Gauge, scopes: ['OPERATOR'] },
  ],
] as const satisfies readonly (readonly PageEntry[])[]

/** Returns the page that a path belongs to: `/agents/agt_1` to `/agents`. */
export function findPage(path: string): PageEntry | undefined {
  const [, name] = path.split('/')
  return PAGE_GROUPS.flat().find((page) => page.path === `/${name}`)
}
