import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const homeRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/home',
    component: lazyPage(() => import('./home-page.tsx'), 'HomePage', ['documents', 'home', 'wallet']),
  }),
] as const
