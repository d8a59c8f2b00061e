import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import type { Random } from './random.ts';

/** Values that exist on the server, so that requests get past the first checks. */
export interface KnownValues {
  readonly uids: readonly string[];
  readonly texts: readonly string[];
}

const STRANGE_TEXTS = [
  ...[
    '',
    ' ',
    '\0',
    '\n',
    '../..',
    '%00',
    '*',
    '.*',
    '(',
    '[',
    '{}',
    'null',
    '-1',
    '1e999',
    '__proto__',
    'constructor',
  ],
  ...['é', '😀', '\u202e', 'a'.repeat(300), '/'.repeat(50), `CVE-2026-${'9'.repeat(30)}`, 'https://', 'http://[::1'],
  ...['sha256:', `sha256:${'0'.repeat(64)}`, 'x@y', "'; DROP TABLE resource; --", 'name desc', 'id asc, name'],
];

/** A random message. Most of its values are plausible, and some are not. */
export function randomMessage(random: Random, desc: DescMessage, known: KnownValues, depth = 0): Message {
  const message = create(desc) as Message & Record<string, unknown>;
  for (const field of desc.fields) {
    if (!random.chance(depth === 0 ? 0.8 : 0.5) || depth > 5) continue;
    const value = fieldValue(random, field, known, depth);
    if (value === undefined) continue;
    if (field.oneof) message[field.oneof.localName] = { case: field.localName, value };
    else message[field.localName] = value;
  }
  return message;
}

function fieldValue(random: Random, field: DescField, known: KnownValues, depth: number): unknown {
  const single = (): unknown => singleValue(random, field, known, depth);
  const count = random.chance(0.05) ? 50 : random.below(4);
  switch (field.fieldKind) {
    case 'list':
      return Array.from({ length: count }, single);
    case 'map': {
      const key = () => (field.mapKey === ScalarType.STRING ? textFor(random, '', known) : String(random.below(100)));
      return Object.fromEntries(Array.from({ length: count }, () => [key(), single()]));
    }
    default:
      return single();
  }
}

function singleValue(random: Random, field: DescField, known: KnownValues, depth: number): unknown {
  if (field.message) return randomMessage(random, field.message, known, depth + 1);
  if (field.enum) return random.chance(0.05) ? 12345 : random.pick(field.enum.values).number;
  switch (field.scalar) {
    case ScalarType.STRING:
      return textFor(random, field.name, known);
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.BYTES:
      return random.bytes(random.below(40));
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return random.pick([0n, 1n, -1n, 1_700_000_000n, 2n ** 63n - 1n, -(2n ** 63n)]);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return random.pick([0n, 1n, 2n ** 64n - 1n]);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return random.pick([0, 1, 200, 2 ** 32 - 1]);
    default:
      return random.pick([0, 1, -1, 200, 2 ** 31 - 1, -(2 ** 31)]);
  }
}

function textFor(random: Random, name: string, known: KnownValues): string {
  if (random.chance(0.15)) return random.pick(STRANGE_TEXTS);
  if (/uid|parent|^id$|_id$|^ids$|group|repo|identity|role|_of$/.test(name)) return random.pick(known.uids);
  return random.chance(0.5) ? random.pick(known.texts) : `text-${random.below(1_000_000)}`;
}
