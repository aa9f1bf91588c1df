import { createRoute, createRouter, redirect } from '@tanstack/react-router'
import { Broken, root } from './app/root.tsx'
import { agentsRoutes } from './pages/agents/routes.ts'
import { collectionsRoutes } from './pages/collections/routes.ts'
import { homeRoutes } from './pages/home/routes.ts'
import { keysRoutes } from './pages/keys/routes.ts'
import { memberRoutes } from './pages/members/routes.ts'
import { modelsRoutes } from './pages/models/routes.ts'
import { operatorRoutes } from './pages/operator/routes.ts'
import { organizationRoutes } from './pages/organization/routes.ts'
import { signInRoutes } from './pages/sign-in/routes.ts'
import { usageRoutes } from './pages/usage/routes.ts'
import { walletRoutes } from './pages/wallet/routes.ts'
import { webhooksRoutes } from './pages/webhooks/routes.ts'
import { workflowsRoutes } from './pages/workflows/routes.ts'
import { NotFound } from './parts/states.tsx'

const index = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/home', replace: true })
  },
})

export const router = createRouter({
  routeTree: root.addChildren([
    index,
    ...signInRoutes,
    ...homeRoutes,
    ...collectionsRoutes,
    ...agentsRoutes,
    ...workflowsRoutes,
    ...modelsRoutes,
    ...keysRoutes,
    ...usageRoutes,
    ...walletRoutes,
    ...webhooksRoutes,
    ...organizationRoutes,
    ...memberRoutes,
    ...operatorRoutes,
  ]),
  defaultPreload: 'intent',
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: Broken,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
