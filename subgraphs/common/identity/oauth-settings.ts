/** An authorization server whose access tokens count as API keys. */
export interface OAuthSettings {
  /** As in the claim `iss`: an http(s) address without a query. */
  readonly issuer: string
  /** The address of `/mcp` as clients use it. A token must have it as an audience (RFC 8707). */
  readonly resource: string
  /** The claim with the id of the API key that the token counts as. */
  readonly keyClaim: string
}
