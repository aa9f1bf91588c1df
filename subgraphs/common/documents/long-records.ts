import { type Connection, type CountItems, encodeCursor, type Page, toConnection } from '../link/connection.ts'
import { type AnswerBudget, countCharacters } from './answer-budget.ts'

/** Records that are read at once: of the longest (4 million characters) these are 16 MB. */
const READ_AT_ONCE = 4
/** A page ends with the record that brings it above this. */
const MAX_PAGE_CHARACTERS = 4 * 1024 * 1024

/**
 * A page of records that may be long. It has fewer than were asked for where they are: then it says that another page
 * follows. `read` gives the next records after the one with this key, in the direction of reading, or from the page's
 * own beginning.
 * @throws {KisError} the operation has read as much as it may.
 */
export async function longRecordsPage<T>(
  page: Page,
  budget: AnswerBudget,
  keyOf: (record: T) => string,
  read: (from: string | null, limit: number) => Promise<readonly T[]>,
  count: CountItems,
): Promise<Connection<T>> {
  const records: T[] = []
  let characters = 0
  while (records.length < page.limit) {
    const last = records.at(-1)
    const limit = Math.min(READ_AT_ONCE, page.limit - records.length)
    const found = await budget.inTurn(() => read(last === undefined ? page.from : keyOf(last), limit))
    for (const record of found) {
      if (characters > MAX_PAGE_CHARACTERS) return toConnection(records, page, keyOf, count, encodeCursor(keyOf(records.at(-1)!)))
      const length = countCharacters(record)
      budget.take(length)
      records.push(record)
      characters += length
    }
    if (found.length < limit) break
  }
  return toConnection(records, page, keyOf, count)
}
