import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/organizations.ts'
import { ok, type Route, route } from '../http/route.ts'
import { lowerCase, toEnum, unixSeconds } from '../http/values.ts'

/** The selected limits of a plan. */
export const LIMITS = 'storageBytes vectors maxFileBytes requestsPerMinute tokensPerMinute concurrency ocrPages'
export const ORGANIZATION = `id name residencyPolicy lowBalanceThreshold status plan { code ${LIMITS} } createdAt` as const
const WITH_QUOTA = `${ORGANIZATION} quota { storageBytes { used limit } vectors { used limit } } ocrQuota { used limit }` as const

interface QuotaData {
  readonly used: number
  readonly limit: number | null
}

export type LimitsData = Readonly<
  Record<'storageBytes' | 'vectors' | 'maxFileBytes' | 'requestsPerMinute' | 'tokensPerMinute' | 'concurrency' | 'ocrPages', number | null>
>

export interface OrganizationData {
  readonly id: string
  readonly name: string
  readonly residencyPolicy: Selected<'Organization', 'residencyPolicy'>['residencyPolicy']
  readonly lowBalanceThreshold: string | null
  readonly status: Selected<'Organization', 'status'>['status']
  readonly plan: LimitsData & { readonly code: string }
  readonly createdAt: string
  /** Selected only for the caller's own organization. */
  readonly quota?: { readonly storageBytes: QuotaData; readonly vectors: QuotaData } | null
  readonly ocrQuota?: QuotaData
}

const GET = gatewayOperation(`query Organization { organization { ${WITH_QUOTA} } }`)
const UPDATE = gatewayOperation(`mutation UpdateOrganization($input: UpdateOrganizationInput!) {
  updateOrganization(input: $input) { organization { ${WITH_QUOTA} } } }`)

export function toOrganization({ quota, ocrQuota, ...data }: OrganizationData): operations.Organization {
  return {
    id: data.id,
    object: 'organization',
    created_at: unixSeconds(data.createdAt),
    name: data.name,
    residency_policy: lowerCase(data.residencyPolicy),
    low_balance_threshold_usd: data.lowBalanceThreshold,
    status: lowerCase(data.status),
    plan: data.plan.code,
    limits_in_force: toLimits(data.plan),
    quota: quota ? { storage_bytes: quota.storageBytes, vectors: quota.vectors, ...(ocrQuota && { ocr_pages: ocrQuota }) } : null,
  }
}

export function toLimits({
  storageBytes,
  vectors,
  maxFileBytes,
  requestsPerMinute,
  tokensPerMinute,
  concurrency,
  ocrPages,
}: LimitsData): operations.OrganizationLimits {
  return {
    storage_bytes: storageBytes,
    vectors,
    max_file_bytes: maxFileBytes,
    requests_per_minute: requestsPerMinute,
    tokens_per_minute: tokensPerMinute,
    concurrency,
    ocr_pages: ocrPages,
  }
}

export const organizationRoutes: readonly Route[] = [
  route({
    operation: operations.getOrganization,
    async handle({ execute }) {
      const { organization } = await execute(GET)
      return ok(toOrganization(organization))
    },
  }),
  route({
    operation: operations.updateOrganization,
    async handle({ execute, body }) {
      const policy = body.residency_policy as string | undefined
      const input = { name: body.name, residencyPolicy: policy && toEnum(policy), lowBalanceThreshold: body.low_balance_threshold_usd }
      const data = await execute(UPDATE, { input }, { lowBalanceThreshold: 'low_balance_threshold_usd' })
      return ok(toOrganization(data.updateOrganization.organization))
    },
  }),
]
