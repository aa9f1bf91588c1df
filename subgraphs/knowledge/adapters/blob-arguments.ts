/** The port's limit of a range. */
const MAX_RANGE_BYTES = 32 * 1024 * 1024
/**
 * Maximum bytes of a blob, which is in memory while it is written. The largest text of a file after ingestion has 200
 * MiB.
 */
export const MAX_BLOB_BYTES = 256 * 1024 * 1024

/** @throws {TypeError} the key is invalid: a defect of the caller */
export function checkKey(key: string): void {
  if (key === '' || !key.isWellFormed()) throw new TypeError(`${JSON.stringify(key)} is not a key of a blob`)
}

/** @throws {RangeError} there are too many bytes: a defect of the caller */
export function checkSize(bytes: Uint8Array): void {
  if (bytes.length > MAX_BLOB_BYTES) throw new RangeError(`a blob of ${bytes.length} bytes is larger than ${MAX_BLOB_BYTES}`)
}

/** @throws {RangeError} the range is invalid: a defect of the caller */
export function checkRange(offset: number, length: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0) throw new RangeError(`the offset of a range is ${offset}`)
  if (!Number.isInteger(length) || length < 0 || length > MAX_RANGE_BYTES) {
    throw new RangeError(`the length of a range is ${length}, not 0 to ${MAX_RANGE_BYTES}`)
  }
}

/** The port's limit of a page. */
const MAX_LISTED = 1_000

/** @throws {RangeError} the limit is out of range: a defect of the caller */
export function checkLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LISTED)
    throw new RangeError(`the limit of a list is ${limit}, not 1 to ${MAX_LISTED}`)
}
