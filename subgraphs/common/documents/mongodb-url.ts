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

/** The text of `KIS_MONGODB_URL`, and the name that the databases of all subgraphs begin with. @throws {Error} names what is wrong and quotes nothing. */
export function parseMongoUrl(text: string): { readonly url: string; readonly name: string } {
  const match = MONGODB_URL.exec(text)
  if (!match)
    throw new Error('is not like mongodb://user:password@host:27017/name, with special characters of the password percent-encoded')
  const name = match[1] || DEFAULT_NAME
  if (!DATABASE_NAME.test(name)) throw new Error('names a database that is not 1 to 40 letters, digits, _ or -')
  return { url: text, name }
}
