import { randomBytes } from 'node:crypto'
import { requireOneSecret } from '../../../common/identity/earlier-rotation.ts'
import { HALF_ROTATED } from '../../../common/identity/secret-file.ts'
import { deriveKey, fingerprintSecret, sealedBy } from '../../../common/identity/secrets.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { BOOTSTRAP, type Bootstrap, type Collections } from '../../use-cases/tables.ts'

const SEAL_CONTEXT = 'key pepper'

/** The dependencies of the pepper's functions. */
export interface PepperDeps {
  readonly collections: Pick<Collections, 'bootstrap' | 'apiKeys' | 'invitations' | 'webhookEndpoints'>
  /** The installation's secret. */
  readonly secret: Uint8Array
  /** See `OwnMark`. */
  readonly secretFingerprint: string | null
}

/** Creates a pepper, sealed under the secret. */
export function newPepper(secret: Uint8Array): Pick<Bootstrap, 'secretFingerprint' | 'sealedPepper'> {
  return sealPepper(randomBytes(32), secret)
}

/** Returns a check that refuses documents that depend on another secret. See `inspect` of `openOwnDocuments`. */
export function requireSecret(secret: Uint8Array) {
  return async (documents: Pick<DocumentStore, 'collection'>, secretFingerprint: string | null): Promise<void> => {
    refuseAnother(await documents.collection<Bootstrap>(BOOTSTRAP).findOne({ _id: 'operator' }), secret, secretFingerprint)
  }
}

/**
 * Returns the pepper. In an installation of version 0.2 it is the key that was derived from the secret, so that all
 * digests stay valid.
 * @throws {Error} the secret is not the one on which the data depends, or is being rotated
 */
export async function openPepper(deps: PepperDeps, first: Bootstrap): Promise<Uint8Array> {
  const { collections, secret, secretFingerprint } = deps
  refuseAnother(first, secret, secretFingerprint)
  const { sealedPepper } = first
  if (sealedPepper !== undefined)
    return new Uint8Array(Buffer.from(sealedBy(secret, 'sealed pepper').open(sealedPepper, SEAL_CONTEXT), 'hex'))
  const { bootstrap, apiKeys, invitations, webhookEndpoints } = collections
  await requireOneSecret([apiKeys, invitations, webhookEndpoints], fingerprintSecret(secret))
  const derived = sealPepper(deriveKey(secret, 'api key pepper'), secret)
  // Another process may have written the same pepper meanwhile.
  await bootstrap.findOneAndUpdate({ _id: 'operator', sealedPepper: null }, { $set: derived })
  return openPepper(deps, (await bootstrap.findOne({ _id: 'operator' }))!)
}

/**
 * Prevents the service from starting until `endRotation`. Repeatable. False: the data depends on the next secret
 * already.
 * @throws {Error} as `requireRotatable`, or a rotation to another secret has started
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

/** Makes the data depend only on the next secret. All other sealed data must be sealed with it already. */
export async function endRotation(deps: PepperDeps, next: Uint8Array): Promise<void> {
  const { bootstrap } = deps.collections
  const { rotatingTo: _, ...first } = (await bootstrap.findOne({ _id: 'operator' }))!
  const sealed = sealPepper(await openPepper(deps, first), next)
  await bootstrap.findOneAndUpdate({ _id: 'operator' }, { $set: sealed, $unset: { rotatingTo: '' } })
}

function refuseAnother(first: Bootstrap | null, secret: Uint8Array, secretFingerprint: string | null): void {
  if (first?.rotatingTo !== undefined) throw new Error(HALF_ROTATED)
  const fingerprint = first?.secretFingerprint ?? secretFingerprint
  if (fingerprint !== null && fingerprint !== fingerprintSecret(secret)) throw anotherSecret()
}

function sealPepper(pepper: Uint8Array, secret: Uint8Array) {
  const sealedPepper = sealedBy(secret, 'sealed pepper').seal(Buffer.from(pepper).toString('hex'), SEAL_CONTEXT)
  return { secretFingerprint: fingerprintSecret(secret), sealedPepper }
}

const anotherSecret = () =>
  new Error(
    'The data was created with another secret: with this one, no API key works, and the stored secrets of callers cannot be read. ' +
      'Set KIS_SECRET to the secret that it was created with, or restore the file `secret` in the data folder.',
  )
