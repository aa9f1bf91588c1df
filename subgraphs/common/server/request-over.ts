/**
 * The reason with which the signal of a request aborts when its connection closes or its answer was sent. Made once: each
 * `abort()` without a reason makes an exception with a stack trace, 2 to 3 % of the CPU of a small request.
 */
export const REQUEST_OVER = new DOMException('The request is over.', 'AbortError')
