/** A person, as an issuer knows them. */
export interface Person {
  readonly issuer: string
  readonly subject: string
  /** Null: the issuer has verified none. */
  readonly verifiedEmail: string | null
  readonly name: string | null
}

/**
 * The address to compare. Capitals count as small letters only in ASCII: other letters that look alike, or that become
 * alike in small letters, such as the Kelvin sign, stay different.
 */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
