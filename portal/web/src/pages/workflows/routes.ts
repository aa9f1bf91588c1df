import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const workflowsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/workflows',
    component: lazyPage(() => import('./workflows-page.tsx'), 'WorkflowsPage'),
  }),
] as const
