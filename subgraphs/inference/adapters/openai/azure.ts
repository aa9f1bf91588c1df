/**
 * The addresses of Azure's server of the OpenAI protocol, which has a separate key header. Requests and responses
 * follow the protocol.
 */
export interface AzureAddresses {
  /** Includes path and query, as for any server of the protocol. */
  readonly baseUrl: string
  /** Returns the route below the base for one model. */
  toRoute(route: string, engineModel: string): string
}

/**
 * Returns the addresses. The v1 API has one address, and takes the deployment's name as the model. The older API,
 * selected by a dated `apiVersion`, has an address for each deployment (Azure OpenAI reference, "REST API versioning").
 */
export function azureAddresses(endpoint: string, apiVersion: string | null): AzureAddresses {
  const root = endpoint.replace(/\/+$/, '')
  if (apiVersion === null) return { baseUrl: `${root}/openai/v1`, toRoute: (route) => route }
  return {
    baseUrl: `${root}/openai?${new URLSearchParams({ 'api-version': apiVersion })}`,
    toRoute: (route, engineModel) => `deployments/${encodeURIComponent(engineModel)}/${route}`,
  }
}
