import { isDeepStrictEqual } from 'node:util';

/*
 * An export adds an extension to each advisory with the fields that its format cannot express, so that a later import
 * restores the advisory completely.
 */

/** The name of the extension in a file. */
export const EXTENSION_KEY = 'wharfinger';

type JsonFields = { readonly [name: string]: unknown };

/**
 * Returns the fields of `whole` that differ from `core`, which is the part of the advisory that the format can express.
 * A field that only `core` has is null. Returns undefined when there is no difference.
 */
export function extensionOf(whole: JsonFields, core: JsonFields): JsonFields | undefined {
  const names = [...Object.keys(whole), ...Object.keys(core).filter((name) => !(name in whole))];
  const differing = names.filter((name) => !isDeepStrictEqual(whole[name], core[name]));
  return differing.length === 0 ? undefined : Object.fromEntries(differing.map((name) => [name, whole[name] ?? null]));
}

/** Restores the whole from its core and the extension. */
export const mergeExtension = <T extends JsonFields>(core: T, extension: JsonFields): T =>
  Object.fromEntries(Object.entries({ ...core, ...extension }).filter(([, value]) => value !== null)) as T;
