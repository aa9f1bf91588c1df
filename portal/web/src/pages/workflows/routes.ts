import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const workflowsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/workflows',
    component: lazyRouteComponent(() => import('./workflows-page.tsx'), 'WorkflowsPage'),
  }),
] as const
