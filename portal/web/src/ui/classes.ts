import { type ClassValue, clsx } from 'clsx'
import { twMerge } from 'tailwind-merge'

/** Joins class names; of two for the same property the later wins. */
export function classes(...values: readonly ClassValue[]): string {
  return twMerge(clsx(values))
}
