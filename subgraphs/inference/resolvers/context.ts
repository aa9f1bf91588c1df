import type { AnswerBudget } from '../../common/documents/answer-budget.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { ServedDeps } from '../use-cases/deps.ts'

/** `budget`: definitions and runs may be long. */
export type Context = ResolverContext<ServedDeps> & { readonly budget: AnswerBudget }
