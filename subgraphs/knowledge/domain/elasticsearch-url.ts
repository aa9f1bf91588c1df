interface ElasticsearchNodes {
  /** URLs without credentials. */
  readonly nodes: readonly string[]
  /** Credentials. Empty strings: none. */
  readonly username: string
  readonly password: string
}

/**
 * Parses `KIS_ELASTICSEARCH_URL`: the addresses of the nodes of one cluster, separated by commas.
 * @throws {Error} the text is invalid; the message quotes nothing of it
 */
export function parseElasticsearchUrl(text: string): ElasticsearchNodes {
  const urls = text.split(',').map((address) => toUrl(address.trim()))
  const users = new Set(urls.flatMap(({ username, password }) => (username || password ? [`${username}:${password}`] : [])))
  if (users.size > 1) throw new Error('names several users or passwords: all addresses must have the same')
  const [username = '', password = ''] = [...users].flatMap((user) => user.split(':')).map(decodeURIComponent)
  for (const url of urls) url.username = url.password = ''
  return { nodes: urls.map(({ href }) => href), username, password }
}

/** The user and the password are percent-decoded: write `%` as `%25`. */
function toUrl(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || /%(?![0-9a-f]{2})/i.test(url.username + url.password))
    throw new Error('must be http(s) addresses, separated by commas, with `,` and `%` of a password written as %2C and %25')
  return url
}
