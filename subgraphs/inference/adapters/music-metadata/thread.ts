import { parentPort, workerData } from 'node:worker_threads'
import { parseBuffer } from 'music-metadata'

const { bytes, mimeType } = workerData as { readonly bytes: Uint8Array; readonly mimeType: string }
const { format } = await parseBuffer(bytes, { mimeType }, { duration: true, skipCovers: true })
parentPort!.postMessage({ hasSound: (format.sampleRate ?? 0) > 0, seconds: format.duration ?? 0 })
