/** Another worker or a deletion has taken over the document. The worker stops and writes nothing more. */
export class LeaseLost extends Error {}

/** The job cannot start yet and is retried soon. This is not a failure. */
export class Postponed extends Error {}
