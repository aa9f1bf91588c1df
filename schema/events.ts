/**
 * The closed set of webhook events, each with the part of the service whose log it comes from; `null`: it is created on
 * request. `events.yaml` describes the meaning and the data of each.
 */
export const EVENTS = {
  'document.updated': 'knowledge',
  'document.deleted': 'knowledge',
  'evaluation.score_fell': 'knowledge',
  'reembedding.completed': 'knowledge',
  'reembedding.failed': 'knowledge',
  'reembedding.cancelled': 'knowledge',
  'agent_run.completed': 'inference',
  'agent_run.failed': 'inference',
  'agent_run.cancelled': 'inference',
  'workflow_run.completed': 'inference',
  'workflow_run.failed': 'inference',
  'workflow_run.cancelled': 'inference',
  'usage.recorded': 'billing',
  'wallet.changed': 'billing',
  'wallet.low_balance': 'billing',
  ping: null,
} as const

export type EventType = keyof typeof EVENTS
/** The part of the service whose log an event comes from. */
export type EventSource = NonNullable<(typeof EVENTS)[EventType]>

/** Events that an endpoint may subscribe to. */
export const EVENT_TYPES = (Object.keys(EVENTS) as EventType[]).filter((type): type is Exclude<EventType, 'ping'> => EVENTS[type] !== null)
