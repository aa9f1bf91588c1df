/** One figure of a scrape. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)/gy

/** Reads Prometheus' text format 0.0.4. Throws for a line that is not of it. */
export function readSamples(text: string): readonly Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value] = LINE.exec(line) ?? []
      if (name === undefined || !Number.isFinite(Number(value))) throw new Error(`not a sample: ${line}`)
      const pairs = [...labels.matchAll(LABEL)]
      if (pairs.map(([pair]) => pair).join('') !== labels) throw new Error(`labels that cannot be read: ${line}`)
      return { name, labels: Object.fromEntries(pairs.map(([, label, text]) => [label!, text!])), value: Number(value) }
    })
}

export async function scrape(port: number): Promise<readonly Sample[]> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  if (response.status !== 200) throw new Error(`a scrape was answered ${response.status}`)
  return readSamples(await response.text())
}

/** The sum of the samples with these labels, among others. */
export function sumOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  const fits = (sample: Sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
  return samples.filter(fits).reduce((sum, { value }) => sum + value, 0)
}
