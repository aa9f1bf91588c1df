/** Loops and loads run at a tenth, unless `npm run soak` asks for the full figures. */
export const soaking = process.env.KIS_SOAK === '1'
export const full = (count: number) => (soaking ? count : Math.ceil(count / 10))
