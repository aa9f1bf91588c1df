/** Another worker or a deletion has taken over the document. The worker stops and writes nothing more. */
export class LeaseLost extends Error {}

/** The work cannot begin yet. It is tried again soon; this is no failure. */
export class Postponed extends Error {}
