import { BlobError } from './errors.ts';

/** In bytewise order, in which blobs are listed. */
export const algorithms = ['sha256', 'sha512'] as const;
export type Algorithm = (typeof algorithms)[number];

/** Paths are built from this and never from the text of a client: `hex` has hexadecimal digits only. */
export interface Digest {
  readonly algorithm: Algorithm;
  readonly hex: string;
}

const hexFormats: Record<Algorithm, RegExp> = { sha256: /^[0-9a-f]{64}$/, sha512: /^[0-9a-f]{128}$/ };

export function toDigest(text: string): Digest | undefined {
  for (const algorithm of algorithms) {
    const hex = text.slice(algorithm.length + 1);
    if (text.startsWith(`${algorithm}:`) && hexFormats[algorithm].test(hex)) return { algorithm, hex };
  }
  return undefined;
}

export function parseDigest(text: string): Digest {
  const digest = toDigest(text);
  if (digest === undefined) throw new BlobError({ reason: 'invalid' });
  return digest;
}

export const formatDigest = ({ algorithm, hex }: Digest): string => `${algorithm}:${hex}`;
