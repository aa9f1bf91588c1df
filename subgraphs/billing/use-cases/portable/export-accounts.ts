import { type ArchiveSink, listAll } from '../../../common/portable/organization-archive.ts'
import type { ApiKey, Collections, Organization } from '../tables.ts'
import { API_KEY, CHANGES_REPORT, LEDGER_REPORT, MEMBER, ORGANIZATION, SPEND_LIMIT, USAGE_REPORT, WALLET_REPORT, WEBHOOK } from './kinds.ts'

const PAGE = 500

/**
 * Finds the organization that is to be exported. `write` writes its accounts: keys without secrets, members, webhooks
 * without secrets, and as reports the wallet, the ledger, the usage records and the changes that operators made.
 * @throws {Error} there is none, or it is deleted, or an import into it has not ended
 */
export async function accountsOf(
  collections: Collections,
  id: string,
): Promise<{ readonly organization: Organization; write(sink: ArchiveSink): Promise<void> }> {
  const organization = await collections.organizations.findOne({ _id: id })
  if (!organization) throw new Error(`There is no organization ${id}.`)
  if (organization.deletedAt) throw new Error(`${id} is deleted, so there is nothing to export.`)
  if (organization.import && !organization.import.isDone) throw new Error(`An import into ${id} has not ended: repeat it first.`)
  return { organization, write: (sink) => exportAccounts(collections, organization, sink) }
}

async function exportAccounts(collections: Collections, organization: Organization, sink: ArchiveSink): Promise<void> {
  const organizationId = organization._id
  await sink.record(ORGANIZATION, organization)
  const written = new Set<string>()
  const writeKey = async (key: ApiKey) => {
    written.add(key._id)
    await sink.record(API_KEY, { ...key, scopes: key.scopes.filter((scope) => scope !== 'operator') })
  }
  for await (const key of listAll(collections.apiKeys, { organizationId }, PAGE)) await writeKey(key)
  /** Writes a key that came after the keys were read. False: there is no such key. */
  const ensureKey = async (_id: string) => {
    const key = written.has(_id) ? null : await collections.apiKeys.findOne({ _id })
    if (key) await writeKey(key)
    return written.has(_id)
  }
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  for (const [_id, { limit }] of Object.entries(wallet?.spending ?? {}))
    if (limit && (await ensureKey(_id))) await sink.record(SPEND_LIMIT, { _id, ...limit })
  for await (const member of listAll(collections.members, { organizationId }, PAGE)) {
    await ensureKey(member.apiKeyId)
    await sink.record(MEMBER, member)
  }
  for await (const endpoint of listAll(collections.webhookEndpoints, { organizationId })) {
    await sink.record(WEBHOOK, endpoint)
    sink.skip('secrets of webhooks')
  }
  const invitations = await collections.invitations.countDocuments({ organizationId, acceptedAt: null, revokedAt: null })
  for (let i = 0; i < invitations; i++) sink.skip('open invitations')
  await exportReports(collections, organization, sink)
}

async function exportReports(collections: Collections, organization: Organization, sink: ArchiveSink): Promise<void> {
  const { _id: organizationId, lastChange } = organization
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  if (wallet) {
    const { available, held, sequence } = wallet
    await sink.record(WALLET_REPORT, { available, held, sequence, openHolds: Object.keys(wallet.holds).length })
  }
  let copied = 0
  for (;;) {
    const entries = await collections.entries.find({ organizationId, sequence: { $gt: copied } }, { sort: { sequence: 1 }, limit: PAGE })
    for (const entry of entries) await sink.record(LEDGER_REPORT, entry)
    copied = entries.at(-1)?.sequence ?? copied
    if (entries.length < PAGE) break
  }
  // The newest entries are in the wallet until they are copied out.
  const waiting = (wallet?.outbox ?? []).filter(({ entry }) => entry.sequence > copied)
  for (const { entry } of waiting) await sink.record(LEDGER_REPORT, entry)
  for (let after = ''; ; ) {
    const records = await collections.usage.find({ organizationId, position: { $gt: after } }, { sort: { position: 1 }, limit: PAGE })
    for (const record of records) await sink.record(USAGE_REPORT, record)
    if (records.length < PAGE) break
    after = records.at(-1)!.position
  }
  for (const { usage } of waiting) if (usage) await sink.record(USAGE_REPORT, usage)
  for await (const change of listAll(collections.organizationChanges, { organizationId }, PAGE))
    if (change._id !== lastChange?._id) await sink.record(CHANGES_REPORT, change)
  if (lastChange) await sink.record(CHANGES_REPORT, lastChange)
}
