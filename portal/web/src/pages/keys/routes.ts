import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const keysRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/keys',
    component: lazyPage(() => import('./keys-page.tsx'), 'KeysPage'),
  }),
] as const
