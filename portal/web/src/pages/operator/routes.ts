import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

const MESSAGES = ['operator', 'wallet'] as const

export const operatorRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/operator',
    validateSearch: readFilters,
    component: lazyPage(() => import('./operator-page.tsx'), 'OperatorPage', MESSAGES),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/operator/organizations/$id',
    component: lazyPage(() => import('./organization-page.tsx'), 'OperatorOrganizationPage', MESSAGES),
  }),
] as const
