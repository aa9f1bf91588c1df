export interface MetricDescription {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

const counter = (help: string, ...labels: readonly string[]) => ({ kind: 'counter', help, labels }) as const
const gauge = (help: string, ...labels: readonly string[]) => ({ kind: 'gauge', help, labels }) as const
const histogram = (help: string, ...labels: readonly string[]) => ({ kind: 'histogram', help, labels }) as const

/**
 * Every metric. The last word of a name is the unit. No label has values that callers choose, but for `organization`,
 * which operators must ask for.
 */
export const METRICS = {
  kis_http_requests_total: counter('Requests that have ended.', 'route', 'method', 'status'),
  kis_http_request_seconds: histogram('Time of a request until its answer, or its stream, has ended.', 'route'),
  kis_http_first_byte_seconds: histogram('Time of a request until its answer begins. A stream begins with its first event.', 'route'),
  kis_http_requests: gauge('Requests under way.'),
  kis_socket_operations_total: counter('Operations over sockets that have ended.', 'type', 'outcome'),
  kis_sockets: gauge('Open sockets whose key was accepted.', 'door'),
  kis_subscriptions: gauge('Operations under way over sockets.', 'door'),
  kis_operation_seconds: histogram(
    'Time of an operation at a part of the service until its answer, or the first event of a subscription.',
    'to',
    'type',
    'outcome',
  ),
  kis_cache_lookups_total: counter('Lookups of a cache.', 'cache', 'result'),
  kis_store_seconds: histogram('Time of an operation of a document store.', 'subgraph', 'operation', 'outcome'),
  kis_blob_store_seconds: histogram('Time of an operation of the store of files.', 'operation', 'outcome'),
  kis_index_seconds: histogram('Time of an operation of the chunk index.', 'operation', 'outcome'),
  kis_engine_seconds: histogram(
    'Time of a call of an engine until its answer, or its stream, has ended.',
    'engine',
    'operation',
    'outcome',
  ),
  kis_engine_first_token_seconds: histogram('Time of a streamed call of an engine until its first piece.', 'engine', 'operation'),
  kis_engine_breaker_open: gauge('1 while an engine gets no calls, because it only fails.', 'engine'),
  kis_tokens_total: counter('Tokens that were charged.', 'model', 'direction'),
  kis_charged_usd_total: counter('Money that was charged, in USD.', 'model'),
  kis_calls_charged_total: counter('Calls of models that were charged.', 'model'),
  kis_zero_usage_calls_total: counter('Calls whose engine reported a usage of zero for work that was not empty.', 'model'),
  kis_wallet_holds: gauge('Open holds, of at most 200 wallets.'),
  kis_wallet_held_usd: gauge('Money that these holds reserve, in USD.'),
  kis_outbox_wallets: gauge('Wallets with entries that wait to be copied to the ledger, of those that this process wrote.'),
  kis_outbox_lag_seconds: gauge('How long the oldest of these entries has waited.'),
  kis_jobs: gauge(
    'Jobs, by what they are of. `due`: a worker may take it; `begun`: taken, or put off. Up to 1,000 are counted.',
    'of',
    'state',
  ),
  kis_job_oldest_seconds: gauge('How long the oldest due job has waited beyond its time.', 'of'),
  kis_task_seconds: histogram('Time of a round of background work.', 'task', 'outcome'),
  kis_task_late_seconds: gauge('For how long beyond its time a task has not succeeded.', 'task'),
  kis_organization_requests_total: counter('Requests that have ended, by organization.', 'organization'),
  kis_organization_tokens_total: counter('Tokens that were charged, by organization.', 'organization'),
  kis_organization_charged_usd_total: counter('Money that was charged, in USD, by organization.', 'organization'),
  kis_event_loop_delay_seconds: gauge('How late the event loop was since the last scrape.', 'percentile'),
  kis_build_info: gauge('1. The labels tell the version and the role.', 'version', 'role'),
  process_resident_memory_bytes: gauge('Memory of the process.'),
  process_cpu_seconds_total: counter('Processor time of the process.'),
  process_start_time_seconds: gauge('When the process started, in seconds since 1970.'),
  nodejs_heap_size_used_bytes: gauge('Memory of JavaScript objects.'),
  nodejs_external_memory_bytes: gauge('Memory of buffers and of native objects.'),
} as const satisfies Readonly<Record<string, MetricDescription>>

export type MetricName = keyof typeof METRICS
export type NameOf<Kind extends MetricDescription['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never
}[MetricName]
