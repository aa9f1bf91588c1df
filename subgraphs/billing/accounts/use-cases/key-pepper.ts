import { randomBytes } from 'node:crypto'
import { requireOneSecret } from '../../../common/identity/earlier-rotation.ts'
import { HALF_ROTATED } from '../../../common/identity/secret-file.ts'
import { deriveKey, fingerprintSecret, sealedBy } from '../../../common/identity/secrets.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { BOOTSTRAP, type Bootstrap, type Collections } from '../../use-cases/tables.ts'

const SEAL_CONTEXT = 'key pepper'

export interface PepperDeps {
  readonly collections: Pick<Collections, 'bootstrap' | 'apiKeys' | 'invitations' | 'webhookEndpoints'>
  /** Of the installation. */
  readonly secret: Uint8Array
  /** See `OwnMark`. */
  readonly madeWith: string | null
}

/** A new pepper, sealed under the secret. */
export function newPepper(secret: Uint8Array): Pick<Bootstrap, 'secretFingerprint' | 'sealedPepper'> {
  return sealPepper(randomBytes(32), secret)
}

/** Refuses documents that depend on another secret. See `OwnDocumentsOptions.look`. */
export function requireSecret(secret: Uint8Array) {
  return async (documents: Pick<DocumentStore, 'collection'>, madeWith: string | null): Promise<void> => {
    refuseAnother(await documents.collection<Bootstrap>(BOOTSTRAP).findOne({ _id: 'operator' }), secret, madeWith)
  }
}

/**
 * Gives the pepper. That of an installation of version 0.2 is what was derived from its secret, so that all digests stay
 * valid.
 * @throws {Error} the secret is another one than that of the data, or is being rotated
 */
export async function openPepper(deps: PepperDeps, first: Bootstrap): Promise<Uint8Array> {
  const { collections, secret, madeWith } = deps
  refuseAnother(first, secret, madeWith)
  const { sealedPepper } = first
  if (sealedPepper !== undefined)
    return new Uint8Array(Buffer.from(sealedBy(secret, 'sealed pepper').open(sealedPepper, SEAL_CONTEXT), 'hex'))
  const { bootstrap, apiKeys, invitations, webhookEndpoints } = collections
  await requireOneSecret([apiKeys, invitations, webhookEndpoints], fingerprintSecret(secret))
  const derived = sealPepper(deriveKey(secret, 'api key pepper'), secret)
  // Another process may be faster, with the same pepper.
  await bootstrap.findOneAndUpdate({ _id: 'operator', sealedPepper: null }, { $set: derived })
  return openPepper(deps, (await bootstrap.findOne({ _id: 'operator' }))!)
}

/**
 * Keeps the service from starting until `endRotation`. Repeatable. False: the data depends on the next secret already.
 * @throws {Error} as `requireRotatable`, or a rotation to another secret has begun
 */
export async function startRotation({ bootstrap }: Pick<Collections, 'bootstrap'>, secret: Uint8Array, next: Uint8Array): Promise<boolean> {
  const first = await requireRotatable({ bootstrap }, [secret, next])
  const [own, rotatingTo] = [fingerprintSecret(secret), fingerprintSecret(next)]
  if (first.secretFingerprint === rotatingTo) return false
  const begun = await bootstrap.findOneAndUpdate(
    { _id: 'operator', secretFingerprint: own, rotatingTo: first.rotatingTo === rotatingTo ? rotatingTo : null },
    { $set: { rotatingTo } },
  )
  if (!begun) throw new Error('A rotation to another new secret has begun. Repeat it with that one: records may depend on it.')
  return true
}

/** @throws {Error} the data depends on none of these secrets, or is of an earlier version */
export async function requireRotatable({ bootstrap }: Pick<Collections, 'bootstrap'>, secrets: readonly Uint8Array[]): Promise<Bootstrap> {
  const first = await bootstrap.findOne({ _id: 'operator' })
  if (!first?.secretFingerprint)
    throw new Error('The data is of an earlier version. Start the service of this version once, then rotate the secret.')
  if (!secrets.map(fingerprintSecret).includes(first.secretFingerprint)) throw anotherSecret()
  return first
}

/** Makes the data depend on the next secret alone. All else must be sealed with it. */
export async function endRotation(deps: PepperDeps, next: Uint8Array): Promise<void> {
  const { bootstrap } = deps.collections
  const { rotatingTo: _, ...first } = (await bootstrap.findOne({ _id: 'operator' }))!
  const sealed = sealPepper(await openPepper(deps, first), next)
  await bootstrap.findOneAndUpdate({ _id: 'operator' }, { $set: sealed, $unset: { rotatingTo: '' } })
}

function refuseAnother(first: Bootstrap | null, secret: Uint8Array, madeWith: string | null): void {
  if (first?.rotatingTo !== undefined) throw new Error(HALF_ROTATED)
  const fingerprint = first?.secretFingerprint ?? madeWith
  if (fingerprint !== null && fingerprint !== fingerprintSecret(secret)) throw anotherSecret()
}

function sealPepper(pepper: Uint8Array, secret: Uint8Array) {
  const sealedPepper = sealedBy(secret, 'sealed pepper').seal(Buffer.from(pepper).toString('hex'), SEAL_CONTEXT)
  return { secretFingerprint: fingerprintSecret(secret), sealedPepper }
}

const anotherSecret = () =>
  new Error(
    'The data was made with another secret: with this one no API key works, and what callers have entrusted cannot be read. ' +
      'Set KIS_SECRET to the one that it was made with, or put the file `secret` back into the data folder.',
  )
