import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readRunSearch, readWorkflowSearch } from './filters.ts'

export const workflowsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/workflows',
    component: lazyPage(() => import('./workflows-page.tsx'), 'WorkflowsPage', ['workflows']),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/workflows/$id',
    validateSearch: readWorkflowSearch,
    component: lazyPage(() => import('./workflow-page.tsx'), 'WorkflowPage', ['workflows']),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/workflows/$id/runs/$runId',
    validateSearch: readRunSearch,
    component: lazyPage(() => import('./run-page.tsx'), 'RunPage', ['workflows']),
  }),
] as const
