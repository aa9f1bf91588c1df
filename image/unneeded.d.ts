export declare function isUnneeded(
  file: string,
  system: { readonly platform: string; readonly arch: string; readonly hasOwnNode: boolean },
): boolean
export declare function fromPackage(path: string): string
