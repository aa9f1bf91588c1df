/** The state of the list of deliveries in its address. */
interface DeliveryFilters {
  readonly status?: (typeof STATUSES)[number]
}

export const STATUSES = ['PENDING', 'DELIVERED', 'FAILED'] as const

export function readDeliveryFilters({ status }: Readonly<Record<string, unknown>>): DeliveryFilters {
  return { status: STATUSES.find((each) => each === status) }
}
