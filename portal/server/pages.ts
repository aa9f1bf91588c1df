import type { FastifyRequest } from 'fastify'

/** The first part of each of the portal's paths. The routes of `portal/web` are below these; all others are of the APIs. */
export const PAGES = [
  'home',
  'collections',
  'agents',
  'workflows',
  'models',
  'keys',
  'usage',
  'wallet',
  'webhooks',
  'organization',
  'people',
  'operator',
  'sign-in',
] as const

const PAGE = new RegExp(`^/(?:(?:${PAGES.join('|')})(?:/.*)?)?$`)

/** Whether a browser opens a page of the portal. Clients of an API, which do not ask for HTML, get what they always got. */
export function asksForPortal(path: string, { headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>): boolean {
  return accept.includes('text/html') && PAGE.test(path)
}
