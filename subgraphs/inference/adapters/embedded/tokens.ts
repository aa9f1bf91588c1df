/** The special tokens `<s>` and `</s>` around each text, and the padding token. */
export const START = 0
export const PAD = 1
export const END = 2
/** The number of special tokens of a text. */
export const SPECIAL_TOKENS = 2
/** Most tokens of a text that the model reads, special tokens included (its model card). */
export const MAX_TOKENS = 512
