import { useCallback, useState } from 'react'
import { useClient } from 'urql'
import { type Failure, toFailure } from '../../../data/failure.ts'
import { FILE_DOWNLOAD } from './document.ts'

interface Original {
  readonly id: string
  readonly name: string
}

interface Download {
  readonly start: (file: Original) => Promise<void>
  readonly isStarting: boolean
  readonly failure: Failure | null
}

/** Makes the browser download a file. The browser shows the progress and stores the file, but never displays it. */
export function useDownload(): Download {
  const client = useClient()
  const [isStarting, setStarting] = useState(false)
  const [failure, setFailure] = useState<Failure | null>(null)
  const start = useCallback(
    async ({ id, name }: Original) => {
      setFailure(null)
      setStarting(true)
      const { data, error } = await client.query(FILE_DOWNLOAD, { id }, { requestPolicy: 'network-only' }).toPromise()
      setStarting(false)
      if (error || !data) setFailure(toFailure(error ?? {}))
      else Object.assign(document.createElement('a'), { href: data.fileDownload.path, download: name }).click()
    },
    [client],
  )
  return { start, isStarting, failure }
}
