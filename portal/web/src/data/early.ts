export const VIEWER_QUERY = `
  query Viewer {
    viewer {
      id
      name
      last4
      scopes
      organization {
        id
        name
        residencyPolicy
      }
    }
  }
` as const

let viewerRequest: Promise<unknown> = Promise.resolve(null)

/** Queries who is signed in, while the application, which needs the result, is still loading. */
export function requestEarly(): void {
  viewerRequest = fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json, application/json' },
    body: JSON.stringify({ operationName: 'Viewer', query: VIEWER_QUERY }),
  })
    .then((response) => response.json())
    .then(({ data }) => data?.viewer ?? null)
    .catch(() => null)
}

/**
 * Returns the viewer, as `VIEWER_QUERY` selects it. Null: there was no early query, or it failed, so the application
 * must query.
 */
export function early(): Promise<unknown> {
  return viewerRequest
}
