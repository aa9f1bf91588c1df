/**
 * Azure's server of the OpenAI protocol has its own addresses and its own header for the key. Requests and answers are
 * the protocol's.
 */
export interface AzureAddresses {
  /** With path and query, as for any server of the protocol. */
  readonly baseUrl: string
  /** A route of the protocol below the base, for one model. */
  toRoute(route: string, engineModel: string): string
}

/**
 * The v1 API has one address, and takes the deployment's name as the model. The older API, chosen by a dated
 * `apiVersion`, has an address for each deployment (Azure OpenAI reference, "REST API versioning").
 */
export function azureAddresses(endpoint: string, apiVersion: string | null): AzureAddresses {
  const root = endpoint.replace(/\/+$/, '')
  if (apiVersion === null) return { baseUrl: `${root}/openai/v1`, toRoute: (route) => route }
  return {
    baseUrl: `${root}/openai?${new URLSearchParams({ 'api-version': apiVersion })}`,
    toRoute: (route, engineModel) => `deployments/${encodeURIComponent(engineModel)}/${route}`,
  }
}
