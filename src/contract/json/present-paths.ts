import type { DescMessage } from '@bufbuild/protobuf';
import { childPath, fieldsByName } from './field-names.ts';
import { codecOf } from './scalar-codecs.ts';

/**
 * The proto paths of all keys in a valid body: the update mask of a PATCH without one. Nested messages contribute the
 * paths of their fields, so that `{"claimMatch": {"issuer": ""}}` does not change the subject. Maps and lists are
 * replaced as a whole.
 */
export function presentPaths(desc: DescMessage, json: unknown, path = ''): string[] {
  return Object.entries(json ?? {}).flatMap(([key, value]) => {
    const field = fieldsByName(desc).get(key)?.field;
    if (field === undefined) return [];
    const fieldPath = childPath(path, field.name);
    const hasFields = field.fieldKind === 'message' && codecOf(field) === undefined;
    const inner = hasFields ? presentPaths(field.message, value, fieldPath) : [];
    return inner.length > 0 ? inner : [fieldPath];
  });
}
