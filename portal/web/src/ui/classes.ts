import { type ClassValue, clsx } from 'clsx'
import { twMerge } from 'tailwind-merge'

/** Joins class names; of two that set the same thing the later wins. */
export function classes(...values: readonly ClassValue[]): string {
  return twMerge(clsx(values))
}
