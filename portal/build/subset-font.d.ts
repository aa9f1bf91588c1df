declare module 'subset-font' {
  interface Options {
    readonly targetFormat: 'woff2'
    readonly noHinting: boolean
    /** OpenType features. Default: all. */
    readonly keepFeatures?: readonly string[]
    /** The part of each axis that stays. */
    readonly variationAxes?: Readonly<Record<string, { readonly min: number; readonly max: number }>>
  }
  /** Returns the font with the glyphs of a text alone. */
  export default function subsetFont(font: Buffer, text: string, options: Options): Promise<Buffer>
}
