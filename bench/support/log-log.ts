/** The growth of a cost with a size. */
export interface Growth {
  /** Names the cost and the size that it depends on. */
  readonly title: string
  /** The unit of the sizes. */
  readonly unit: string
  /** Points by size, smallest first. Costs are ms of CPU. */
  readonly points: readonly { readonly size: number; readonly cost: number }[]
}

/**
 * Returns the largest power of the size with which the cost grows between two neighbours: 0 is constant, 1 is in
 * proportion.
 */
export function steepest({ points }: Growth): number {
  return Math.max(...points.slice(1).map(({ size, cost }, i) => Math.log(cost / points[i]!.cost) / Math.log(size / points[i]!.size)))
}

const WIDTH = 300
const HEIGHT = 240
const MARGIN = { left: 48, right: 16, top: 40, bottom: 40 }
const COLUMNS = 3

/**
 * Draws a panel for each growth, both axes logarithmic with the same length for a factor of ten; the dashed line grows
 * in proportion.
 */
export function logLogSvg(growths: readonly Growth[]): string {
  const rows = Math.ceil(growths.length / COLUMNS)
  const panels = growths.map((growth, i) => {
    const [x, y] = [(i % COLUMNS) * WIDTH, Math.floor(i / COLUMNS) * HEIGHT]
    return `<g transform="translate(${x} ${y})">${panel(growth)}</g>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${COLUMNS * WIDTH} ${rows * HEIGHT}" font-family="sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    ...panels,
    '</svg>\n',
  ].join('\n')
}

function panel({ title, unit, points }: Growth): string {
  const sizes = points.map(({ size }) => Math.log10(size))
  const costs = points.map(({ cost }) => Math.log10(cost))
  const [left, right] = [Math.floor(Math.min(...sizes)), Math.ceil(Math.max(...sizes))]
  const [low, high] = [Math.floor(Math.min(...costs)), Math.ceil(Math.max(...costs) + 1e-9)]
  const [innerWidth, innerHeight] = [WIDTH - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom]
  const decade = Math.min(innerWidth / Math.max(1, right - left), innerHeight / Math.max(1, high - low))
  const x = (log: number) => round(MARGIN.left + (log - left) * decade)
  const y = (log: number) => round(HEIGHT - MARGIN.bottom - (log - low) * decade)
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const line = (x1: number, y1: number, x2: number, y2: number, style: string) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" ${style}/>`
  const grid = 'stroke="#ddd"'
  const rise = Math.min(right - sizes[0]!, high - costs[0]!)
  return [
    `<text x="${WIDTH / 2}" y="18" text-anchor="middle" font-weight="bold">${title}</text>`,
    ...range(left, right).map((log) => line(x(log), y(low), x(log), y(high), grid) + label(x(log), y(low) + 14, 'middle', 10 ** log)),
    ...range(low, high).map((log) => line(x(left), y(log), x(right), y(log), grid) + label(x(left) - 4, y(log) + 4, 'end', 10 ** log)),
    `<text x="${x((left + right) / 2)}" y="${y(low) + 30}" text-anchor="middle">${unit}</text>`,
    `<text x="${x(left)}" y="${y(high) - 6}">ms of CPU</text>`,
    line(x(sizes[0]!), y(costs[0]!), x(sizes[0]! + rise), y(costs[0]! + rise), 'stroke="#999" stroke-dasharray="4 3"'),
    `<polyline points="${points.map((_, i) => `${x(sizes[i]!)},${y(costs[i]!)}`).join(' ')}" fill="none" stroke="#06c" stroke-width="2"/>`,
    ...points.map((_, i) => `<circle cx="${x(sizes[i]!)}" cy="${y(costs[i]!)}" r="3" fill="#06c"/>`),
  ].join('\n')
}

function label(x: number, y: number, anchor: string, value: number): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${value.toLocaleString('en', { notation: 'compact' })}</text>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
