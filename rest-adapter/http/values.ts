import type { Scope } from '../contract/accounts.ts'

/** Converts GraphQL's instant to Unix seconds. */
export function unixSeconds(instant: string): number {
  return Math.floor(Date.parse(instant) / 1000)
}

export function unixSecondsOrNull(instant: string | null): number | null {
  return instant === null ? null : unixSeconds(instant)
}

/** Converts Unix seconds to GraphQL's instant. */
export function toInstant(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}

/** Converts `KNOWLEDGE_READ` to `knowledge:read`. Scopes are the only enum values with a colon in REST. */
export function toScope(value: string): Scope {
  return value.toLowerCase().replace('_', ':') as Scope
}

/** Converts `knowledge:read` to `KNOWLEDGE_READ`. */
export function toEnum(value: string): string {
  return value.toUpperCase().replace(':', '_')
}

/** Converts an enum value of GraphQL to that of REST. */
export function lowerCase<T extends string | null>(value: T): T extends string ? Lowercase<T> : null {
  return (value?.toLowerCase() ?? null) as never
}
