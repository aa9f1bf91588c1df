import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const operatorRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/operator',
    component: lazyPage(() => import('./operator-page.tsx'), 'OperatorPage'),
  }),
] as const
