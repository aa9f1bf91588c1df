import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'
import { readCollectionFilters, readDocumentView, readListFilters } from './filters.ts'

export const collectionsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/collections',
    validateSearch: readListFilters,
    component: lazyRouteComponent(() => import('./collections-page.tsx'), 'CollectionsPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/collections/$id',
    validateSearch: readCollectionFilters,
    component: lazyRouteComponent(() => import('./collection-page.tsx'), 'CollectionPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/collections/$id/documents/$documentId',
    validateSearch: readDocumentView,
    component: lazyRouteComponent(() => import('./document/document-page.tsx'), 'DocumentPage'),
  }),
] as const
