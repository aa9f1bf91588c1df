/** A person, as identified by an issuer. */
export interface Person {
  readonly issuer: string
  readonly subject: string
  /** Null: the issuer has verified no email address. */
  readonly verifiedEmail: string | null
  readonly name: string | null
}

/**
 * Returns the email address in the form for comparisons. Case is ignored only in ASCII: other letters that look alike,
 * or that become alike in lower case, such as the Kelvin sign, stay different.
 */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
