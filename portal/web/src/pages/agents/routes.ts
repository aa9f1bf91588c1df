import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'
import { readSearch } from './base/search.ts'

export const agentsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/agents',
    component: lazyRouteComponent(() => import('./agents-page.tsx'), 'AgentsPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/agents/new',
    component: lazyRouteComponent(() => import('./new-agent-page.tsx'), 'NewAgentPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/agents/$id',
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('./agent-page.tsx'), 'AgentPage'),
  }),
] as const
