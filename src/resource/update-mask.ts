import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { equals } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { invalid } from '../base/errors.ts';
import { isImmutable, isOutputOnly } from '../contract/field-behavior.ts';

/** More than any resource has fields. */
const MAX_PATHS = 256;

/** A mask path as the fields it runs through. */
type Path = readonly DescField[];

const textOf = (path: Path): string => path.map((field) => field.name).join('.');

/**
 * Copies the fields that `mask` names from `source` to `target`. Returns the top-level fields and the full paths that it
 * has copied. Without a mask it copies the populated fields, with `*` all fields, so that absent ones are cleared (AIP-134).
 */
export function applyMask(
  desc: DescMessage,
  target: Message,
  source: Message,
  mask: readonly string[] | undefined,
): ReadonlySet<string> {
  const from = reflect(desc, source);
  const into = reflect(desc, target);
  const touched = new Set<string>();
  for (const path of pathsOf(desc, from, mask)) {
    if (path.some(isOutputOnly)) continue;
    const immutable = path.find(isImmutable);
    if (immutable && !sameAt(path, from, into)) {
      throw invalid(textOf(path), 'cannot be changed after creation');
    }
    copy(path, from, into);
    touched.add((path[0] as DescField).name).add(textOf(path));
  }
  return touched;
}

function pathsOf(desc: DescMessage, source: ReflectMessage, mask: readonly string[] | undefined): Path[] {
  if (!mask || mask.length === 0) return populated(source, []);
  if (mask.length > MAX_PATHS) throw invalid('update_mask', `must name at most ${MAX_PATHS} paths`);
  if (mask.includes('*')) {
    if (mask.length > 1) throw invalid('update_mask', '* means all fields and cannot be combined with others');
    return desc.fields.map((field) => [field]);
  }
  return mask.map((text) => parse(desc, text));
}

function populated(message: ReflectMessage, above: Path): Path[] {
  return message.fields.flatMap((field) => {
    if (!message.isSet(field)) return [];
    if (field.fieldKind !== 'message' || isWellKnown(field.message)) return [[...above, field]];
    const deeper = populated(message.get(field), [...above, field]);
    return deeper.length > 0 ? deeper : [[...above, field]];
  });
}

/** Well-known types are copied as a whole. */
const isWellKnown = (message: DescMessage): boolean => message.typeName.startsWith('google.protobuf.');

function parse(desc: DescMessage, text: string): Path {
  const path: DescField[] = [];
  let at: DescMessage | undefined = desc;
  for (const segment of text.split('.')) {
    const field: DescField | undefined = at?.fields.find((f) => f.name === segment || f.jsonName === segment);
    if (!field) throw invalid('update_mask', `unknown field ${JSON.stringify(text.slice(0, 100))}`);
    path.push(field);
    at = field.fieldKind === 'message' ? field.message : undefined;
  }
  return path;
}

function sameAt(path: Path, from: ReflectMessage, into: ReflectMessage): boolean {
  const a = valueAt(path, from);
  const b = valueAt(path, into);
  if (isReflected(a) && isReflected(b)) return equals(a.desc, a.message, b.message);
  return a === b;
}

function valueAt(path: Path, message: ReflectMessage): unknown {
  let at = message;
  for (const field of path.slice(0, -1)) {
    if (!at.isSet(field)) return undefined;
    at = at.get(field) as ReflectMessage;
  }
  const last = path.at(-1) as DescField;
  return at.isSet(last) ? at.get(last) : undefined;
}

const isReflected = (value: unknown): value is ReflectMessage =>
  typeof value === 'object' && value !== null && 'desc' in value && 'message' in value;

function copy(path: Path, from: ReflectMessage, into: ReflectMessage): void {
  const [field, ...deeper] = path as [DescField, ...DescField[]];
  if (deeper.length === 0) {
    if (from.isSet(field)) into.set(field, from.get(field) as never);
    else into.clear(field);
    return;
  }
  // If the source lacks the message, the field in it is cleared; if the target lacks it too, there is nothing to clear.
  if (!from.isSet(field) && !into.isSet(field)) return;
  const source = from.get(field) as ReflectMessage;
  const inner = into.isSet(field) ? (into.get(field) as ReflectMessage) : emptyOf(source);
  copy(deeper, source, inner);
  into.set(field, inner as never);
}

const emptyOf = (message: ReflectMessage): ReflectMessage => reflect(message.desc);
