import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const agentsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/agents',
    component: lazyPage(() => import('./agents-page.tsx'), 'AgentsPage'),
  }),
] as const
