/** Another worker or a deletion has taken over the document. The worker stops and writes nothing more. */
export class LeaseLost extends Error {}
