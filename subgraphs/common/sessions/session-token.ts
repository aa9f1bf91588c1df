/** 256 random bits in base64url. The name in front lets secret scanners know a token that leaked. */
const TOKEN = /^kis_session_[\w-]{43}$/

/** Whether a text has the form of a session's token. Such a session need not exist. */
export const isSessionToken = (text: string): boolean => TOKEN.test(text)

/** `bytes`: 32 random ones. */
export function sessionTokenFrom(bytes: Uint8Array): string {
  if (bytes.length !== 32) throw new RangeError('a token is made of 32 bytes')
  return `kis_session_${Buffer.from(bytes).toString('base64url')}`
}
