import type { ReactNode } from 'react'

/** Names and values, one below the other. A fact without a value is left out. */
export function FactList({ facts }: { readonly facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-2.5 text-sm">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name} className="col-span-2 grid grid-cols-subgrid items-center">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0">{value}</dd>
          </div>
        ))}
    </dl>
  )
}
