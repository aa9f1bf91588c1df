import { createHmac } from 'node:crypto'
import type { Plan } from '../../../common/identity/principal.ts'
import { type ArchiveTakers, refuseOwnedByOthers, requireOwn, storedTaker, taker } from '../../../common/portable/organization-archive.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { type IdSource, randomHex } from '../../../common/process/ids.ts'
import { MAX_API_KEYS } from '../../accounts/domain/api-key.ts'
import { eraseAgain } from '../../accounts/use-cases/erasures/erasures.ts'
import { newSecret } from '../../accounts/use-cases/new-api-key.ts'
import { MAX_REVOKED_LIMITS } from '../../accounts/use-cases/spend-limit.ts'
import { NOTHING_SPENT } from '../../ledger/domain/key-spending.ts'
import { emptyWallet } from '../../ledger/domain/wallet.ts'
import { newNonce } from '../../webhooks/domain/signature.ts'
import type { ApiKey, Collections, Organization, OrganizationImport } from '../tables.ts'
import { API_KEY, CHANGES_REPORT, LEDGER_REPORT, MEMBER, ORGANIZATION, SPEND_LIMIT, USAGE_REPORT, WALLET_REPORT, WEBHOOK } from './kinds.ts'

interface ImportDeps {
  readonly collections: Collections
  readonly plans: readonly Plan[]
  readonly clock: Clock
  readonly ids: IdSource
  /** Called with the archive's rules of its organization, before anything is written. */
  onOrganization(rules: ImportedRules): void
}

/** What only an operator may decide about an organization. An archive contains these decisions. */
export type ImportedRules = Pick<Organization, 'plan' | 'limits' | 'suspendedAt' | 'suspensionReason'>

/**
 * Unrevoked keys of an archive: keys that are created at the same time may exceed the limit by a few, and each import
 * adds one.
 */
const MAX_LIVE_KEYS = MAX_API_KEYS + 100
/**
 * Spend limits of an archive. Each hold writes the wallet that contains them. A running revocation has as many again.
 */
const MAX_SPEND_LIMITS = MAX_LIVE_KEYS + 2 * MAX_REVOKED_LIMITS

/** The target organization and the source archive. */
interface ImportedAs {
  readonly organizationId: string
  /** The id of the archive. */
  readonly archive: string
}

type ImportState = 'new' | 'begun' | 'done'

/** One import from billing's view: its importers, its state, and its end. */
export function importAccounts(deps: ImportDeps, as: ImportedAs) {
  return {
    takers: accountTakers(deps, as),
    state: () => findImportState(deps, as),
    finish: (pepper: Uint8Array) => finishImport({ ...deps, pepper }, as),
  }
}

/** Suspension reason until the end of an import, so that nobody sees a partial organization. */
const REASON = 'An import into it has not ended'

/**
 * Returns the state of the import of an archive.
 * @throws {Error} the organization exists, and does not come from this archive
 */
async function findImportState(
  { collections, clock }: Pick<ImportDeps, 'collections' | 'clock'>,
  { organizationId, archive }: ImportedAs,
): Promise<ImportState> {
  const { organizations } = collections
  const found = await organizations.findOne({ _id: organizationId })
  if (!found) return 'new'
  // The organization's erasure may have ended before the import, so data that was written since is erased, too.
  if (found.deletedAt && found.import?.archive === archive && !found.import.isDone) await eraseAgain({ collections, clock }, organizationId)
  if (found.deletedAt)
    throw new Error(`${organizationId} was deleted here, and its accounts are retained. Import it under another id: --as new.`)
  if (found.import && !found.import.isDone && found.import.archive !== archive)
    throw new Error(`Another import into ${organizationId} has not ended: repeat that one, or delete the organization.`)
  if (found.import?.archive !== archive)
    throw new Error(`${organizationId} already exists here. An import replaces nothing: import it under another id (--as new).`)
  return found.import.isDone ? 'done' : 'begun'
}

/** Imports the accounts. The first record, the organization, starts the import: suspended, with an empty wallet. */
function accountTakers(
  { collections, plans, clock, ids, onOrganization }: ImportDeps,
  { organizationId, archive }: ImportedAs,
): ArchiveTakers {
  const { organizations, wallets, apiKeys, members, webhookEndpoints } = collections
  const nothing = { write: async () => undefined }
  const counted = { liveKeys: 0, spendLimits: 0 }
  // The secret of a key stays in its installation. A rotation issues a new secret for an imported key.
  const keys = storedTaker(
    API_KEY,
    apiKeys,
    organizationId,
    (key) => ({ ...key, digest: `no secret ${key._id}`, last4: '' }),
    async (imported) => {
      // A key uses the rates of its ancestors, and refers to its member. Both may come later in the archive.
      const related = imported.flatMap(({ ancestors = [] }) => ancestors)
      await refuseOwnedByOthers(apiKeys, [...new Set(related)], organizationId)
      const owners = imported.flatMap(({ memberId }) => memberId ?? [])
      await refuseOwnedByOthers(members, [...new Set(owners)], organizationId)
    },
  )
  return {
    files: [],
    records: [
      taker(ORGANIZATION, {
        async check([organization]) {
          const { plan } = organization!
          onOrganization(organization!)
          if (!plans.some(({ code }) => code === plan))
            throw new Error(`The organization has the plan ${JSON.stringify(plan)}, which the catalog here lacks: add it to catalog.yaml.`)
        },
        async write([original]) {
          const { suspendedAt = null, suspensionReason = null, ...organization } = original!
          await wallets.insertMissing([emptyWallet(organizationId)])
          const begun: OrganizationImport = {
            archive,
            nonce: randomHex(32),
            apiKeyId: ids('key'),
            isDone: false,
            suspendedAt,
            suspensionReason,
          }
          await organizations.insertMissing([
            { _id: organizationId, ...organization, suspendedAt: clock.now(), suspensionReason: REASON, import: begun },
          ])
        },
      }),
      {
        ...keys,
        async check(imported) {
          counted.liveKeys += (imported as readonly ApiKey[]).filter(({ revokedAt }) => revokedAt === null).length
          if (counted.liveKeys > MAX_LIVE_KEYS)
            throw new Error(`The archive has more than ${MAX_LIVE_KEYS} keys that are not revoked. Revoke some, and export again.`)
          await keys.check?.(imported)
        },
      },
      taker(SPEND_LIMIT, {
        async check({ length }) {
          counted.spendLimits += length
          if (counted.spendLimits > MAX_SPEND_LIMITS)
            throw new Error(`The archive is corrupted: it has more than ${MAX_SPEND_LIMITS} spend limits.`)
        },
        async write(limits) {
          await requireOwn(
            [apiKeys],
            limits.map(({ _id }) => _id),
            organizationId,
          )
          const spending = limits.map(({ _id, ...limit }) => [`spending.${_id}`, { ...NOTHING_SPENT, limit }] as const)
          await wallets.findOneAndUpdate({ _id: organizationId }, { $set: Object.fromEntries(spending), $inc: { revision: 1 } })
        },
      }),
      // A member who signs in acts by this key, which gets the scopes of the role.
      storedTaker(
        MEMBER,
        members,
        organizationId,
        // A sign-in selects the organization of the last sign-in, which cannot be later than now.
        (member) => ({ ...member, lastSeenAt: new Date(Math.min(member.lastSeenAt.getTime(), clock.now().getTime())) }),
        (imported) =>
          requireOwn(
            [apiKeys],
            imported.map(({ apiKeyId }) => apiKeyId),
            organizationId,
          ),
      ),
      storedTaker(WEBHOOK, webhookEndpoints, organizationId, (endpoint) => ({
        ...endpoint,
        isActive: false,
        disabledReason: null,
        disabledAt: clock.now(),
        failingSince: null,
        nonce: newNonce(),
        previousNonce: null,
        previousUntil: null,
      })),
      ...[WALLET_REPORT, LEDGER_REPORT, USAGE_REPORT, CHANGES_REPORT].map((kind) => taker(kind, nothing)),
    ],
  }
}

/**
 * Ends the import when all parts have their data: the organization gets an admin key, and its former state. Can be
 * repeated; returns the key until its first use, then null.
 * @throws {Error} the organization was deleted meanwhile
 */
async function finishImport(
  deps: Pick<ImportDeps, 'collections' | 'clock'> & { readonly pepper: Uint8Array },
  { organizationId, archive }: ImportedAs,
): Promise<string | null> {
  const { collections, pepper, clock } = deps
  const { organizations, apiKeys } = collections
  const begun = await organizations.findOne({ _id: organizationId })
  if (begun?.deletedAt && begun.import?.archive === archive) await eraseAgain({ collections, clock }, organizationId)
  if (!begun?.import || begun.deletedAt || begun.import.archive !== archive)
    throw new Error(`${organizationId} was deleted while it was imported. Import it under another id: --as new.`)
  const { nonce, apiKeyId: _id, isDone, suspendedAt, suspensionReason } = begun.import
  const generated = newSecret(pepper, createHmac('sha256', pepper).update(`key of an import ${nonce}`).digest())
  if (!isDone) {
    await apiKeys.insertMissing([
      {
        _id,
        organizationId,
        name: 'Admin key of the import',
        scopes: ['admin'],
        modelAllowlist: null,
        digest: generated.digest,
        last4: generated.last4,
        expiresAt: null,
        revokedAt: null,
        createdAt: clock.now(),
        unseen: true,
      },
    ])
    const ended: Partial<Organization> = { suspendedAt, suspensionReason }
    const isEnded = await organizations.findOneAndUpdate(
      { _id: organizationId, 'import.archive': archive, 'import.isDone': false, deletedAt: null },
      { $set: { ...ended, 'import.isDone': true }, $inc: { revision: 1 } },
    )
    // Another process has ended the import, or an operator has deleted the organization.
    if (!isEnded) return finishImport(deps, { organizationId, archive })
  }
  const key = await apiKeys.findOne({ _id })
  return key?.unseen && key.digest === generated.digest ? generated.key : null
}
