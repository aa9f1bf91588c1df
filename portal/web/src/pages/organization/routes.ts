import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const organizationRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/organization',
    validateSearch: ({ tab }: { tab?: unknown }): { tab?: 'sessions' } => (tab === 'sessions' ? { tab } : {}),
    component: lazyPage(() => import('./organization-page.tsx'), 'OrganizationPage', ['models', 'organization', 'wallet']),
  }),
] as const
