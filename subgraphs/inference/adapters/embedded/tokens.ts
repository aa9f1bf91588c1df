/** The marks `<s>` and `</s>` around each text, and what pads it. */
export const START = 0
export const PAD = 1
export const END = 2
/** Marks of a text. */
export const MARKS = 2
/** Tokens of a text that the model reads, marks included (its model card). */
export const MAX_TOKENS = 512
