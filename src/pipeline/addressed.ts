import type { DescMessage, Message } from '@bufbuild/protobuf';
import { isUid, rootOf } from '../base/uid.ts';
import type { Method } from '../contract/method.ts';
import { scopeFieldOf } from './authorize.ts';

/** Requests have few uids. Beyond this number they tell nothing about the organization. */
const MAX_UIDS = 100;
/** Filters are messages in the request, and their fields may be messages too. */
const MAX_DEPTH = 3;

/**
 * The roots of the uids that a request names, which are organizations or people: of its scope if the method has one, and
 * otherwise of all its fields, such as the parent or the filter of a List.
 */
export function addressedBy(method: Method, request: Message): readonly string[] {
  const texts = method.access === 'scoped' ? [scopeFieldOf(method, request)] : textsIn(method.desc.input, request, 1);
  const roots = new Set<string>();
  for (const text of texts) if (typeof text === 'string' && isUid(text)) roots.add(rootOf(text));
  return [...roots];
}

function textsIn(desc: DescMessage, message: Message, depth: number): unknown[] {
  const found: unknown[] = [];
  for (const field of desc.fields) {
    if (field.fieldKind === 'map') continue;
    const values = [fieldValue(message, field)].flat();
    if (found.length + values.length > MAX_UIDS) break;
    for (const value of values) {
      if (typeof value === 'string') found.push(value);
      else if (field.message && value && depth < MAX_DEPTH) {
        found.push(...textsIn(field.message, value as Message, depth + 1));
      }
    }
  }
  return found;
}

/** The value of a field, also of one in a oneof, whose message has `{ case, value }` under the name of the oneof. */
function fieldValue(message: Message, { localName, oneof }: DescMessage['fields'][number]): unknown {
  const values = message as unknown as Readonly<Record<string, unknown>>;
  if (!oneof) return values[localName];
  const chosen = values[oneof.localName] as { readonly case?: string; readonly value?: unknown } | undefined;
  return chosen?.case === localName ? chosen.value : undefined;
}
