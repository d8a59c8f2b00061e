import { renamingFields } from '../base/errors.ts';

/** The v1 names of v2 fields, by their proto names or by their whole paths. */
export type V1FieldNames = Readonly<Record<string, string>>;

/**
 * Returns a function that runs `work`. If v2 reports field violations, they are thrown with the v1 names of the fields.
 */
export function createViolationRenamer(v1FieldNames: V1FieldNames = {}): <T>(work: () => T | Promise<T>) => Promise<T> {
  // A whole path such as `uidp.children_of`, or each field of it, also in one with an index: `requests[0].role_uid`.
  const rename = (path: string): string =>
    v1FieldNames[path] ?? path.replace(/[a-z_]\w*/g, (name) => v1FieldNames[name] ?? name);
  return (work) => renamingFields(rename, work);
}
