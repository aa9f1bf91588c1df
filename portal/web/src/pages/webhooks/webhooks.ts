import { graphql, type ResultOf } from '../../data/graphql.ts'

export const ENDPOINTS = graphql(`
  query WebhookEndpoints($first: Int, $after: String) {
    webhookEndpoints(first: $first, after: $after) {
      pageInfo {
        hasNextPage
        endCursor
      }
      edges {
        node {
          id
          url
          description
          eventTypes
          isActive
          disabledReason
          failingSince
        }
      }
    }
  }
`)

export type EndpointRow = NonNullable<ResultOf<typeof ENDPOINTS>['webhookEndpoints']>['edges'][number]['node']

export const ENDPOINT = graphql(`
  query WebhookEndpoint($id: ID!) {
    webhookEndpoint(id: $id) {
      id
      url
      description
      eventTypes
      isActive
      disabledReason
      disabledAt
      failingSince
      previousSecretUntil
      createdAt
    }
  }
`)

export type Endpoint = NonNullable<ResultOf<typeof ENDPOINT>['webhookEndpoint']>

export const DELIVERIES = graphql(`
  query WebhookDeliveries($endpointId: ID!, $status: WebhookDeliveryStatus, $first: Int, $after: String) {
    webhookDeliveries(endpointId: $endpointId, status: $status, first: $first, after: $after) {
      pageInfo {
        hasNextPage
        endCursor
      }
      edges {
        node {
          id
          status
          event {
            id
            type
            subject
            at
            data
          }
          attempts {
            at
            statusCode
            durationMs
            error
            responseStart
          }
        }
      }
    }
  }
`)

export type Delivery = NonNullable<ResultOf<typeof DELIVERIES>['webhookDeliveries']>['edges'][number]['node']

export const CREATE = graphql(`
  mutation CreateWebhook($input: CreateWebhookEndpointInput!) {
    createWebhookEndpoint(input: $input) {
      secret
      webhookEndpoint {
        id
        url
      }
    }
  }
`)

export const UPDATE = graphql(`
  mutation UpdateWebhook($input: UpdateWebhookEndpointInput!) {
    updateWebhookEndpoint(input: $input) {
      webhookEndpoint {
        id
        isActive
      }
    }
  }
`)

export const DELETE = graphql(`
  mutation DeleteWebhook($id: ID!) {
    deleteWebhookEndpoint(id: $id) {
      webhookEndpoint {
        id
      }
    }
  }
`)

export const ROTATE = graphql(`
  mutation RotateWebhookSecret($id: ID!) {
    rotateWebhookSecret(id: $id) {
      secret
      webhookEndpoint {
        id
        previousSecretUntil
      }
    }
  }
`)

export const PING = graphql(`
  mutation PingWebhook($id: ID!) {
    pingWebhookEndpoint(id: $id) {
      delivery {
        id
        status
      }
    }
  }
`)

export const REDELIVER = graphql(`
  mutation Redeliver($input: RedeliverWebhookInput!) {
    redeliverWebhook(input: $input) {
      delivery {
        id
        status
      }
    }
  }
`)
