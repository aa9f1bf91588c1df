import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

export const modelsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/models',
    validateSearch: readFilters,
    component: lazyPage(() => import('./models-page.tsx'), 'ModelsPage', ['models']),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/models/$id/try',
    component: lazyPage(() => import('./try/try-page.tsx'), 'TryPage', ['models']),
  }),
] as const
