import type { Random } from './random.ts';

/** Damages bytes in one or a few places: changes, removes, repeats or inserts some. */
export function mutateBytes(random: Random, bytes: Buffer): Buffer {
  let mutated = bytes;
  for (let rest = 1 + random.below(3); rest > 0; rest--) {
    const at = random.below(mutated.length + 1);
    const end = Math.min(mutated.length, at + random.below(20));
    const before = mutated.subarray(0, at);
    const part = mutated.subarray(at, end);
    const after = mutated.subarray(end);
    switch (random.below(5)) {
      case 0:
        mutated = Buffer.concat([before, after]);
        break;
      case 1:
        mutated = Buffer.concat([before, part, part, after]);
        break;
      case 2:
        mutated = Buffer.concat([before, random.bytes(part.length), after]);
        break;
      case 3:
        mutated = Buffer.concat([before, random.bytes(1 + random.below(8)), part, after]);
        break;
      default:
        mutated = Buffer.concat([before, part]);
    }
  }
  return mutated;
}

const JSON_PARTS = [
  ...[
    'null',
    '[]',
    '{}',
    '""',
    '-0',
    '1e400',
    '9999999999999999999',
    'true',
    '"\\ud800"',
    '"\\u0000"',
    '{"a":1,"a":2}',
  ],
  ...['[[[[[[[[[[]]]]]]]]]]', ',', ':', '"', '\\', '\ufeff', '{"__proto__":{}}', `"${'x'.repeat(5000)}"`],
  ...['['.repeat(3000), `[${'1,'.repeat(20_000)}1]`],
];

/** Replaces a value of a JSON text, or damages its bytes. */
export function mutateJson(random: Random, text: string): Buffer {
  if (random.chance(0.5)) return mutateBytes(random, Buffer.from(text));
  const values = [...text.matchAll(/(?<=[:[,])(?:"[^"]*"|[\w.+-]+)/g)];
  const value = values.length > 0 ? random.pick(values) : undefined;
  const at = value?.index ?? random.below(text.length + 1);
  return Buffer.from(text.slice(0, at) + random.pick(JSON_PARTS) + text.slice(at + (value?.[0].length ?? 0)));
}

const TEXT_PARTS = [
  '%',
  '%00',
  '%ff',
  '%2F',
  '..',
  '/',
  '//',
  '?',
  '&',
  '=',
  '+',
  ';',
  ':',
  '[0]',
  '{',
  'é',
  ' ',
  '.',
  '~',
];

/** Damages a path or a query, whose characters must stay printable for the client to send them. */
export function mutateTarget(random: Random, target: string): string {
  let mutated = target;
  for (let rest = 1 + random.below(3); rest > 0; rest--) {
    const at = random.below(mutated.length + 1);
    mutated = mutated.slice(0, at) + random.pick(TEXT_PARTS) + mutated.slice(at + random.below(4));
  }
  return encodeURI(mutated).replace(/%25/g, '%').slice(0, 20_000);
}
