import { isDeepStrictEqual } from 'node:util'
import type { Scope } from './expression.ts'
import { RenderBudget } from './render-budget.ts'
import { renderValue } from './template.ts'

const OPERATORS = {
  eq: (left: unknown, right: unknown) => isDeepStrictEqual(left, right),
  ne: (left: unknown, right: unknown) => !isDeepStrictEqual(left, right),
  gt: (left: unknown, right: unknown) => ordered(left, right) && left! > right!,
  gte: (left: unknown, right: unknown) => ordered(left, right) && left! >= right!,
  lt: (left: unknown, right: unknown) => ordered(left, right) && left! < right!,
  lte: (left: unknown, right: unknown) => ordered(left, right) && left! <= right!,
  in: (left: unknown, right: unknown) => Array.isArray(right) && right.some((item) => isDeepStrictEqual(left, item)),
  contains: (left: unknown, right: unknown) =>
    Array.isArray(left)
      ? left.some((item) => isDeepStrictEqual(item, right))
      : typeof left === 'string' && typeof right === 'string' && left.includes(right),
  exists: (left: unknown) => left !== null && left !== undefined,
} as const

/** The condition of a branch. Both sides are values with expressions. */
export type Condition =
  | { readonly left: unknown; readonly op: keyof typeof OPERATORS; readonly right?: unknown }
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }

/** Values of different types are unequal and have no order. */
export function holds(condition: Condition, scope: Scope, budget = new RenderBudget()): boolean {
  if ('all' in condition) return condition.all.every((each) => holds(each, scope, budget))
  if ('any' in condition) return condition.any.some((each) => holds(each, scope, budget))
  if ('not' in condition) return !holds(condition.not, scope, budget)
  const { left, op, right = null } = condition
  const [a, b] = [renderValue(left, scope, budget), renderValue(right, scope, budget)]
  budget.spendJson(a)
  budget.spendJson(b)
  return OPERATORS[op](a, b)
}

function ordered(left: unknown, right: unknown): boolean {
  return (typeof left === 'number' && typeof right === 'number') || (typeof left === 'string' && typeof right === 'string')
}
