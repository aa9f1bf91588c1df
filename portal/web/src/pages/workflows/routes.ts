import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'
import { readRunSearch, readWorkflowSearch } from './filters.ts'

export const workflowsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/workflows',
    component: lazyRouteComponent(() => import('./workflows-page.tsx'), 'WorkflowsPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/workflows/$id',
    validateSearch: readWorkflowSearch,
    component: lazyRouteComponent(() => import('./workflow-page.tsx'), 'WorkflowPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/workflows/$id/runs/$runId',
    validateSearch: readRunSearch,
    component: lazyRouteComponent(() => import('./run-page.tsx'), 'RunPage'),
  }),
] as const
