/** A database of one subgraph. */
export interface MongoDatabase {
  /** A connection string. It may hold a password, so no message quotes it. */
  readonly url: string
  readonly database: string
}

/** Host list, then perhaps a database and options. An `@`, `/` or `?` of a password is percent-encoded, so that none is taken for a host. */
const MONGODB_URL = /^mongodb(?:\+srv)?:\/\/(?:[^@/?]+@)?[^@/?]+(?:\/([^@/?]*))?(?:\?[^@]*)?$/
/** With the subgraph's name well under MongoDB's 63 bytes, and without the characters that some platforms do not take. */
const DATABASE_NAME = /^[A-Za-z0-9_-]{1,40}$/
const DEFAULT_NAME = 'kis'

/** `KIS_MONGODB_URL` and the subgraph's own database `<name>_<subgraph>` there; null when it is not set, or wrong: `problems` then says how. */
export function mongoDatabaseOf(text: string | undefined, subgraph: string, problems: string[]): MongoDatabase | null {
  if (!text) return null
  const match = MONGODB_URL.exec(text)
  const name = match?.[1] || DEFAULT_NAME
  if (match && DATABASE_NAME.test(name)) return { url: text, database: `${name}_${subgraph}` }
  problems.push(
    match
      ? 'KIS_MONGODB_URL names a database that is not 1 to 40 letters, digits, _ or -'
      : 'KIS_MONGODB_URL is not like mongodb://user:password@host:27017/name, with special characters of the password percent-encoded',
  )
  return null
}
