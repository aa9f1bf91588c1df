/** Returns a file as a data URL: `data:image/png;base64,…`. */
export function toDataUrl(file: Blob): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.onload = () => resolve(reader.result as string)
  reader.onerror = () => reject(reader.error)
  reader.readAsDataURL(file)
  return promise
}

export async function toBase64(file: Blob): Promise<string> {
  const url = await toDataUrl(file)
  return url.slice(url.indexOf(',') + 1)
}
