import type { Json } from '../support/client.ts'

/** The files of every frozen collection, in the order of the list's `documents`. */
export const FILES = [
  { name: 'إجازات.md', text: '# الإجازات\nيحق لكل موظف ثلاثون يوماً من الإجازة السنوية مدفوعة الأجر.' },
  { name: 'travel.md', text: '# Travel policy\nMeals are reimbursed up to 60 dollars a day.' },
] as const

/** Every frozen agent is asked it; the Arabic file answers. */
export const AGENT_QUESTION = 'كم يوماً مدة الإجازة السنوية؟'
/** Finds the English file first, which is the list's `top`. */
export const SEARCH = 'How much are meals reimbursed a day?'
/** Every frozen workflow is asked it, and gives the answer. */
export const WORKFLOW_INPUTS = { q: 'When is lunch?' }
export const WORKFLOW_OUTPUT = { answer: '“Lunch is at noon.”' }

/** What is in a frozen data folder: ids, what was told of them, and the keys in clear, which serve nothing else. */
export interface FrozenList {
  /** The operator's key; everything below but `other` is its organization's. */
  readonly key: string
  /** A key with the scopes `inference`, `agents` and `knowledge:read`. */
  readonly partner: string
  readonly collection: string
  /** In the order of `FILES`. */
  readonly documents: readonly string[]
  readonly agent: string
  /** A run of the agent that keeps a thread. */
  readonly run: string
  /** What that run answered. */
  readonly output: string
  readonly workflow: string
  /** A run of the workflow. */
  readonly wrun: string
  /** A second organization. */
  readonly other: string
  /** `GET /v1/wallet` at the end. */
  readonly wallet: Json
  /** Usage records at the end. */
  readonly usage: number
  /** Text of the best hit of `SEARCH`. */
  readonly top: string
}
