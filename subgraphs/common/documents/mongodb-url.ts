/** A database of one subgraph. */
export interface MongoDatabase {
  /** A connection string. It may contain a password, so messages must not quote it. */
  readonly url: string
  readonly database: string
}

/**
 * Hosts, then optionally a database and options. In a password, `@`, `/` and `?` are percent-encoded, so a password is
 * never mistaken for a host.
 */
const MONGODB_URL = /^mongodb(?:\+srv)?:\/\/(?:[^@/?]+@)?[^@/?]+(?:\/([^@/?]*))?(?:\?[^@]*)?$/
/**
 * A name of this form and a subgraph's name together are far below MongoDB's 63 bytes, without characters that some
 * platforms refuse.
 */
const DATABASE_NAME = /^[A-Za-z0-9_-]{1,40}$/
const DEFAULT_NAME = 'kis'

/**
 * Reads the text of `KIS_MONGODB_URL`, and the prefix of the databases of all subgraphs.
 * @throws {Error} the text is wrong; the message quotes nothing of it
 */
export function parseMongoUrl(text: string): { readonly url: string; readonly name: string } {
  const match = MONGODB_URL.exec(text)
  if (!match)
    throw new Error('is not like mongodb://user:password@host:27017/name, with special characters of the password percent-encoded')
  const name = match[1] || DEFAULT_NAME
  if (!DATABASE_NAME.test(name)) throw new Error('names a database that is not 1 to 40 letters, digits, _ or -')
  return { url: text, name }
}
