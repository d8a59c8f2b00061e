/** Something from outside of the repository that an artifact contains. */
export interface Material {
  /** A package URL. */
  readonly uri: string;
  /** Hexadecimal digests by algorithm. */
  readonly digest: Readonly<Record<string, string>>;
}
