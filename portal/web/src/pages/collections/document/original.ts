import { useCallback, useState } from 'react'
import { type Client, useClient } from 'urql'
import { type Failure, toFailure } from '../../../data/failure.ts'
import { FILE_PIECE } from './document.ts'

interface Original {
  readonly id: string
  readonly name: string
  readonly sizeBytes: number
}

/** Reads a file piece by piece. `onProgress` gets the share that is here. */
async function read(client: Client, { id, sizeBytes }: Original, onProgress: (share: number) => void): Promise<BlobPart[]> {
  const pieces: BlobPart[] = []
  for (let offset = 0; offset < sizeBytes; ) {
    const { data, error } = await client.query(FILE_PIECE, { id, offset }, { requestPolicy: 'network-only' }).toPromise()
    if (error || !data) throw toFailure(error ?? {})
    const { content, length } = data.fileContent
    if (length === 0) break
    pieces.push(Uint8Array.from(atob(content.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0)))
    offset += length
    onProgress(offset / sizeBytes)
  }
  return pieces
}

export interface Download {
  readonly start: (file: Original) => Promise<void>
  /** 0 to 1; null: nothing is on its way. */
  readonly share: number | null
  readonly failure: Failure | null
}

/** Gives a file to the browser to save. It never shows it: the type is that of plain bytes. */
export function useDownload(): Download {
  const client = useClient()
  const [share, setShare] = useState<number | null>(null)
  const [failure, setFailure] = useState<Failure | null>(null)
  const start = useCallback(
    async (file: Original) => {
      setFailure(null)
      setShare(0)
      try {
        const url = URL.createObjectURL(new Blob(await read(client, file, setShare), { type: 'application/octet-stream' }))
        const link = Object.assign(document.createElement('a'), { href: url, download: file.name })
        link.click()
        // The browser has taken the bytes by then.
        setTimeout(() => URL.revokeObjectURL(url), 60_000)
      } catch (error) {
        setFailure(error as Failure)
      } finally {
        setShare(null)
      }
    },
    [client],
  )
  return { start, share, failure }
}
