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

/** Asks who is signed in. The application, which needs the answer, is still loading. */
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

/** The viewer, as `VIEWER_QUERY` has it. Null: nobody asked, or there is another answer, which the application asks for itself. */
export function early(): Promise<unknown> {
  return viewerRequest
}
