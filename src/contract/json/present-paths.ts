import type { DescMessage } from '@bufbuild/protobuf';
import { childPath, fieldsByName } from './field-names.ts';
import { codecOf } from './scalar-codecs.ts';

/**
 * The proto paths of all keys in a body that has been read without complaint: the mask of a PATCH that names none.
 * Objects are followed down to their leaves, so that `{"claimMatch": {"issuer": ""}}` leaves the subject alone;
 * maps and lists are replaced as a whole.
 */
export function presentPaths(desc: DescMessage, json: unknown, path = ''): string[] {
  return Object.entries(json ?? {}).flatMap(([key, value]) => {
    const field = fieldsByName(desc).get(key)?.field;
    if (field === undefined) return [];
    const at = childPath(path, field.name);
    const isOpen = field.fieldKind === 'message' && codecOf(field) === undefined;
    const inner = isOpen ? presentPaths(field.message, value, at) : [];
    return inner.length > 0 ? inner : [at];
  });
}
