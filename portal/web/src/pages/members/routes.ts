import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const memberRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/people',
    component: lazyPage(() => import('./members-page.tsx'), 'MembersPage', ['people']),
  }),
] as const
