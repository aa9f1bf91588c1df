/** True if `npm run soak` runs the tests. Loops and loads otherwise run at a tenth of their size. */
export const soaking = process.env.KIS_SOAK === '1'
export const full = (count: number) => (soaking ? count : Math.ceil(count / 10))
