import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const agentsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/agents',
    component: lazyRouteComponent(() => import('./agents-page.tsx'), 'AgentsPage'),
  }),
] as const
