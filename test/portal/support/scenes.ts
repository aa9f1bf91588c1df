import type { Page } from '../../browser/packages.ts'
import type { Gallery } from './gallery.ts'

/** One picture of the portal: who opens which path, and what they do there. */
export interface Scene {
  readonly name: string
  /** A path with ids by their names in the gallery, such as `/agents/{agent}`. */
  readonly path: string
  /** Default: the owner. Null: nobody. */
  readonly as?: keyof Gallery['keys'] | null
  /** Where it looks the same on all widths, or is on one alone. */
  readonly width?: 360 | 1440
  /** `say`: the words of a message in the language of the page. */
  readonly act?: (page: Page, say: (id: string) => string) => Promise<void>
}

/** Presses the first button with these words. */
const press =
  (...ids: readonly string[]): NonNullable<Scene['act']> =>
  async (page, say) => {
    for (const id of ids) {
      const button = page.getByRole(id.startsWith('menu:') ? 'menuitem' : 'button', { name: say(id.replace('menu:', '')) })
      await button.first().click()
    }
  }

const tabs = (name: string, path: string, values: readonly string[], rest = ''): readonly Scene[] =>
  values.map((tab) => ({ name: `${name}-${tab}`, path: `${path}?tab=${tab}${rest}` }))

const COLLECTION = '/collections/{collection}'
const DOCUMENT = `${COLLECTION}/documents/{document}`
const LISTS = ['collections', 'agents', 'workflows', 'usage', 'wallet', 'keys', 'webhooks', 'people'] as const

/** Every page, tab, drawer and dialog, and every kind of state. */
export const SCENES: readonly Scene[] = [
  { name: 'sign-in', path: '/sign-in', as: null },
  { name: 'sign-in-error', path: '/sign-in?error=not_a_member', as: null },
  { name: 'sign-in-invited', path: '/sign-in?invitation={invitation}', as: null },
  { name: 'home', path: '/home' },
  { name: 'home-account', path: '/home', width: 1440, act: (page) => page.locator('div.border-t > button').first().click() },
  { name: 'home-display', path: '/home', act: press('preferences.title') },
  { name: 'home-menu', path: '/home', width: 360, act: press('shell.menu') },
  { name: 'home-empty', path: '/home', as: 'empty' },
  { name: 'home-reader', path: '/home', as: 'reader' },

  { name: 'collections', path: '/collections' },
  { name: 'collections-new', path: '/collections?open=new' },
  { name: 'collections-nothing', path: '/collections?q=zzz' },
  ...tabs('collection', COLLECTION, ['documents', 'search', 'evaluation', 'settings']),
  { name: 'collection-chosen', path: COLLECTION, act: (page) => page.locator('thead [role=checkbox], thead input').first().click() },
  {
    name: 'collection-delete',
    path: COLLECTION,
    act: async (page, say) => {
      await page.locator('thead [role=checkbox], thead input').first().click()
      await page
        .getByRole('button', { name: say('common.delete') })
        .first()
        .click()
    },
  },
  { name: 'collection-web', path: COLLECTION, act: press('documents.webAdd') },
  { name: 'collection-found', path: `${COLLECTION}?tab=search&query=lighthouse` },
  { name: 'collection-found-arabic', path: `${COLLECTION}?tab=search&query=ارتفاع%20المنارة&mode=LEXICAL&group=true` },
  { name: 'collection-evaluation-start', path: `${COLLECTION}?tab=evaluation`, act: press('evaluation.start') },
  { name: 'collection-evaluation-ranks', path: `${COLLECTION}?tab=evaluation`, act: press('evaluation.byQuestion') },
  { name: 'collection-gold', path: `${COLLECTION}?tab=evaluation`, act: press('evaluation.add') },
  { name: 'document', path: DOCUMENT },
  { name: 'document-text', path: `${DOCUMENT}?view=text` },
  { name: 'document-versions', path: `${DOCUMENT}?view=versions` },
  { name: 'document-edit', path: DOCUMENT, act: press('common.actions', 'menu:common.edit') },
  { name: 'document-failed', path: `${COLLECTION}/documents/{failed}` },

  { name: 'agents', path: '/agents' },
  { name: 'agents-new', path: '/agents/new' },
  ...tabs('agent', '/agents/{agent}', ['chat', 'runs', 'settings', 'use']),
  { name: 'agent-thread', path: '/agents/{agent}?tab=chat&thread={thread}' },
  { name: 'agent-run', path: '/agents/{agent}?tab=runs&run={agentRun}' },
  { name: 'agent-versions', path: '/agents/{agent}?tab=settings&from=1&to=2' },
  { name: 'agent-delete', path: '/agents/{agent}', act: press('common.actions', 'menu:agents.delete') },

  { name: 'workflows', path: '/workflows' },
  { name: 'workflows-new', path: '/workflows', act: press('workflows.create') },
  ...tabs('workflow', '/workflows/{workflow}', ['graph', 'editor', 'run', 'runs', 'versions']),
  { name: 'workflow-node', path: '/workflows/{workflow}?node=read' },
  { name: 'workflow-run-view', path: '/workflows/{workflow}/runs/{run}' },
  { name: 'workflow-run-node', path: '/workflows/{workflow}/runs/{run}?node=read' },
  { name: 'workflow-run-failed', path: '/workflows/{broken}/runs/{brokenRun}' },

  { name: 'models', path: '/models' },
  { name: 'models-open', path: '/models?model=mock-chat' },
  { name: 'models-try', path: '/models/mock-chat/try' },
  { name: 'models-try-embedding', path: '/models/e5-small-ar-en/try' },
  { name: 'models-try-rerank', path: '/models/mock-rerank/try' },
  { name: 'models-try-speech', path: '/models/mock-speech/try' },

  { name: 'usage', path: '/usage' },
  { name: 'usage-day', path: '/usage?range=day&by=OPERATION' },
  { name: 'usage-records', path: '/usage?tab=records' },
  { name: 'usage-receipt', path: '/usage?tab=records&record={usage}' },
  { name: 'wallet', path: '/wallet' },
  { name: 'keys', path: '/keys' },
  { name: 'keys-new', path: '/keys', act: press('keys.create') },
  { name: 'keys-open', path: '/keys?key={key}' },
  { name: 'webhooks', path: '/webhooks' },
  { name: 'webhooks-new', path: '/webhooks', act: press('webhooks.create') },
  { name: 'webhook', path: '/webhooks/{endpoint}' },
  { name: 'webhook-failed', path: '/webhooks/{refusing}' },
  { name: 'organization', path: '/organization' },
  { name: 'organization-sessions', path: '/organization?tab=sessions' },
  { name: 'people', path: '/people' },
  { name: 'people-invite', path: '/people', act: press('people.invite') },

  { name: 'operator', path: '/operator', as: 'operator' },
  ...tabs('operator', '/operator', ['health', 'queue', 'plans']).map((scene): Scene => ({ ...scene, as: 'operator' })),
  { name: 'operator-new', path: '/operator', as: 'operator', act: press('operator.create') },
  { name: 'operator-organization', path: '/operator/organizations/{organization}', as: 'operator' },
  { name: 'wallet-operator', path: '/wallet', as: 'operator' },

  ...LISTS.map((name): Scene => ({ name: `${name}-empty`, path: `/${name}`, as: 'empty' })),
  { name: 'no-permission', path: '/keys', as: 'reader' },
  { name: 'not-found', path: '/agents/agt_00000000000000000000000000' },
  { name: 'no-page', path: '/home/nothing' },
]
