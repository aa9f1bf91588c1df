import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

/** A path of the portal itself: a link may send nobody to another site after signing in. */
const OWN_PATH = /^\/(?![/\\])/

export const signInRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/sign-in',
    validateSearch: ({ next }: { next?: unknown }): { next?: string } =>
      typeof next === 'string' && OWN_PATH.test(next) && !next.startsWith('/sign-in') ? { next } : {},
    component: lazyPage(() => import('./sign-in-page.tsx'), 'SignInPage'),
  }),
] as const
