import { isDeepStrictEqual } from 'node:util';

/** The name under which a file carries what its format has no place for. */
export const REST_KEY = 'wharfinger';

type Json = { readonly [name: string]: unknown };

/** What `core`, which a format could carry, lacks of `whole`; null for what it has too much. Nothing when it lacks nothing. */
export function restOf(whole: Json, core: Json): Json | undefined {
  const names = [...Object.keys(whole), ...Object.keys(core).filter((name) => !(name in whole))];
  const differing = names.filter((name) => !isDeepStrictEqual(whole[name], core[name]));
  return differing.length === 0 ? undefined : Object.fromEntries(differing.map((name) => [name, whole[name] ?? null]));
}

/** Puts the two together again. */
export const withRest = <T extends Json>(core: T, rest: Json): T =>
  Object.fromEntries(Object.entries({ ...core, ...rest }).filter(([, value]) => value !== null)) as T;
