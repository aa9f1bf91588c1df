import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readSearch } from './base/search.ts'

export const agentsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/agents',
    component: lazyPage(() => import('./agents-page.tsx'), 'AgentsPage', ['agents']),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/agents/new',
    component: lazyPage(() => import('./new-agent-page.tsx'), 'NewAgentPage', ['agents']),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/agents/$id',
    validateSearch: readSearch,
    component: lazyPage(() => import('./agent-page.tsx'), 'AgentPage', ['agents']),
  }),
] as const
