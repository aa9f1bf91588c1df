import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

export const modelsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/models',
    validateSearch: readFilters,
    component: lazyRouteComponent(() => import('./models-page.tsx'), 'ModelsPage'),
  }),
] as const
