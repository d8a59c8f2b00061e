import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';

/** How v1 and v2 speak of the same thing. Fields go by their proto names. */
export interface Differences {
  /** What v2 calls a field of v1, at any depth. */
  readonly names?: Readonly<Record<string, string>>;
  /** Fields that the other version does not have. */
  readonly onlyV1?: readonly string[];
  readonly onlyV2?: readonly string[];
  /** Fields whose values differ too, by their v1 names. */
  readonly values?: Readonly<Record<string, Conversion>>;
}

export interface Conversion {
  toV2(value: never): unknown;
  toV1(value: never): unknown;
}

export interface Vocabulary<V1 extends DescMessage, V2 extends DescMessage> {
  toV2(message: MessageShape<V1>): MessageShape<V2>;
  /** An absent message stays absent: what is missing is for v2 to say. */
  toV2(message: MessageShape<V1> | undefined): MessageShape<V2> | undefined;
  toV1(message: MessageShape<V2>): MessageShape<V1>;
  /** An update mask of everything that v1 can say: a PUT replaces that, and leaves alone what v1 does not know of. */
  readonly replaced: { readonly paths: string[] };
}

/**
 * Translates between two messages that differ in names only. Whatever one has and the other has not must be said:
 * a field that would get lost silently stops the server from starting.
 */
export function vocabulary<V1 extends DescMessage, V2 extends DescMessage>(
  v1: V1,
  v2: V2,
  { names = {}, onlyV1 = [], onlyV2 = [], values = {} }: Differences = {},
): Vocabulary<V1, V2> {
  const v1Names = Object.fromEntries(Object.entries(names).map(([ours, theirs]) => [theirs, ours]));
  const forth = translator(v1, v2, {
    nameOf: (name) => names[name] ?? name,
    drops: new Set(onlyV1),
    convert: (name) => values[name]?.toV2,
  });
  const back = translator(v2, v1, {
    nameOf: (name) => v1Names[name] ?? name,
    drops: new Set(onlyV2),
    convert: (name) => values[v1Names[name] ?? name]?.toV1,
  });
  return {
    toV2: ((message: MessageShape<V1> | undefined) => message && forth(message)) as Vocabulary<V1, V2>['toV2'],
    toV1: (message) => back(message),
    replaced: { paths: v1.fields.filter(({ name }) => !onlyV1.includes(name)).map(({ name }) => names[name] ?? name) },
  };
}

interface Direction {
  nameOf(name: string): string;
  readonly drops: ReadonlySet<string>;
  convert(name: string): ((value: never) => unknown) | undefined;
}

type Fields = Record<string, unknown>;
type Copy = (source: Fields, target: Fields) => void;

/** Works out once how each field is copied, so that a message costs no look at descriptors. */
function translator<From extends DescMessage, To extends DescMessage>(
  from: From,
  to: To,
  direction: Direction,
): (message: MessageShape<From>) => MessageShape<To> {
  const copies = from.members
    .filter(({ name }) => !direction.drops.has(name))
    .map((member) => (member.kind === 'oneof' ? copyOneof(member, to, direction) : copyField(member, to, direction)));
  return (message) => {
    const target: Fields = {};
    for (const copy of copies) copy(message as unknown as Fields, target);
    return create(to, target as MessageInitShape<To>);
  };
}

function copyField(field: DescField, to: DescMessage, direction: Direction): Copy {
  const counterpart = counterpartOf(field, to, direction);
  const translate = translateValue(field, counterpart, direction);
  const { localName } = counterpart;
  return (source, target) => {
    const value = source[field.localName];
    if (value !== undefined) target[localName] = translate(value);
  };
}

function copyOneof(oneof: DescOneof, to: DescMessage, direction: Direction): Copy {
  const known = oneof.fields.filter(({ name }) => !direction.drops.has(name));
  const cases = new Map(
    known.map((field) => {
      const counterpart = counterpartOf(field, to, direction);
      return [field.localName, { counterpart, translate: translateValue(field, counterpart, direction) }] as const;
    }),
  );
  return (source, target) => {
    const chosen = source[oneof.localName] as { case: string; value: unknown } | { case: undefined };
    const found = chosen.case === undefined ? undefined : cases.get(chosen.case);
    if (!found || chosen.case === undefined) return;
    const { counterpart, translate } = found;
    target[counterpart.oneof?.localName ?? ''] = { case: counterpart.localName, value: translate(chosen.value) };
  };
}

function counterpartOf(field: DescField, to: DescMessage, { nameOf, convert }: Direction): DescField {
  const counterpart = to.fields.find(({ name }) => name === nameOf(field.name));
  const same = counterpart && (convert(field.name) !== undefined || isAlike(field, counterpart));
  if (counterpart && same && (counterpart.oneof === undefined) === (field.oneof === undefined)) return counterpart;
  throw new Error(`compat: ${to.typeName} has nothing for ${field.parent.typeName}.${field.name}`);
}

/** Messages are compared field by field when they are translated. */
const isAlike = (a: DescField, b: DescField): boolean =>
  JSON.stringify(shapeOf(a)) === JSON.stringify(shapeOf(b)) && (!a.enum || !b.enum || numberedAlike(a.enum, b.enum));

const shapeOf = (field: DescField) => ({
  kind: field.fieldKind,
  of: field.message ? 'message' : field.enum ? 'enum' : field.scalar,
  by: field.fieldKind === 'map' ? field.mapKey : undefined,
});

/** One may have values that the other has not: enums are open, so the numbers travel, and v2 refuses what it does not know. */
function numberedAlike(a: DescEnum, b: DescEnum): boolean {
  const [some, all] = [a, b].map(({ values }) => new Set(values.map(({ number }) => number)));
  return some !== undefined && all !== undefined && (some.isSubsetOf(all) || all.isSubsetOf(some));
}

function translateValue(field: DescField, counterpart: DescField, direction: Direction): (value: unknown) => unknown {
  const convert = direction.convert(field.name);
  if (convert) return convert as (value: unknown) => unknown;
  if (!field.message || !counterpart.message || field.message === counterpart.message) return (value) => value;
  const translate = translator(field.message, counterpart.message, direction) as (value: unknown) => unknown;
  switch (field.fieldKind) {
    case 'list':
      return (value) => (value as unknown[]).map(translate);
    case 'map':
      return (value) => Object.fromEntries(Object.entries(value as Fields).map(([key, one]) => [key, translate(one)]));
    default:
      return translate;
  }
}
