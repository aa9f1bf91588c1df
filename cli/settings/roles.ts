/** Roles that `kis start` can start alone. */
export const ROLES = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter'] as const
export type Role = (typeof ROLES)[number]
