import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';

/** The differences between a v1 and a v2 message. Fields are identified by their proto names. */
export interface MappingOptions {
  /** The v2 names of v1 fields, at any depth. */
  readonly renames?: Readonly<Record<string, string>>;
  /** Fields without a counterpart in the other version. */
  readonly onlyV1?: readonly string[];
  readonly onlyV2?: readonly string[];
  /** Converters for fields with different values, by the v1 names of the fields. */
  readonly converters?: Readonly<Record<string, ValueConverter>>;
}

export interface ValueConverter {
  toV2(value: never): unknown;
  toV1(value: never): unknown;
}

export interface MessageMapper<V1 extends DescMessage, V2 extends DescMessage> {
  toV2(message: MessageShape<V1>): MessageShape<V2>;
  /** An absent message stays absent, so that v2 can refuse it if it is required. */
  toV2(message: MessageShape<V1> | undefined): MessageShape<V2> | undefined;
  toV1(message: MessageShape<V2>): MessageShape<V1>;
  /** Contains all fields of v1. A v1 update is a PUT: it replaces these fields and keeps those that only v2 has. */
  readonly fullUpdateMask: { readonly paths: string[] };
}

/**
 * Creates a mapper between two messages that differ only as `options` say. Throws if a field has no counterpart and is
 * not listed in `onlyV1` or `onlyV2`. Mappers are created at startup, so no field is lost silently.
 */
export function createMessageMapper<V1 extends DescMessage, V2 extends DescMessage>(
  v1: V1,
  v2: V2,
  { renames = {}, onlyV1 = [], onlyV2 = [], converters = {} }: MappingOptions = {},
): MessageMapper<V1, V2> {
  const v1Names = Object.fromEntries(Object.entries(renames).map(([v1Name, v2Name]) => [v2Name, v1Name]));
  const toV2 = createTranslator(v1, v2, {
    targetNameOf: (name) => renames[name] ?? name,
    dropped: new Set(onlyV1),
    converterOf: (name) => converters[name]?.toV2,
  });
  const toV1 = createTranslator(v2, v1, {
    targetNameOf: (name) => v1Names[name] ?? name,
    dropped: new Set(onlyV2),
    converterOf: (name) => converters[v1Names[name] ?? name]?.toV1,
  });
  return {
    toV2: ((message: MessageShape<V1> | undefined) => message && toV2(message)) as MessageMapper<V1, V2>['toV2'],
    toV1: (message) => toV1(message),
    fullUpdateMask: {
      paths: v1.fields.filter(({ name }) => !onlyV1.includes(name)).map(({ name }) => renames[name] ?? name),
    },
  };
}

/** The mapping in one direction. Names are those of the source message. */
interface Direction {
  targetNameOf(name: string): string;
  readonly dropped: ReadonlySet<string>;
  converterOf(name: string): ((value: never) => unknown) | undefined;
}

type Fields = Record<string, unknown>;
type Copy = (source: Fields, target: Fields) => void;

/** Decides once how each field is copied, so that the descriptors are not read for each message. */
function createTranslator<From extends DescMessage, To extends DescMessage>(
  from: From,
  to: To,
  direction: Direction,
): (message: MessageShape<From>) => MessageShape<To> {
  const copies = from.members
    .filter(({ name }) => !direction.dropped.has(name))
    .map((member) => (member.kind === 'oneof' ? copyOneof(member, to, direction) : copyField(member, to, direction)));
  return (message) => {
    const target: Fields = {};
    for (const copy of copies) copy(message as unknown as Fields, target);
    return create(to, target as MessageInitShape<To>);
  };
}

function copyField(field: DescField, to: DescMessage, direction: Direction): Copy {
  const counterpart = requireCounterpart(field, to, direction);
  const translate = createValueTranslator(field, counterpart, direction);
  const { localName } = counterpart;
  return (source, target) => {
    const value = source[field.localName];
    if (value !== undefined) target[localName] = translate(value);
  };
}

function copyOneof(oneof: DescOneof, to: DescMessage, direction: Direction): Copy {
  const fields = oneof.fields.filter(({ name }) => !direction.dropped.has(name));
  const cases = new Map(
    fields.map((field) => {
      const counterpart = requireCounterpart(field, to, direction);
      return [
        field.localName,
        { counterpart, translate: createValueTranslator(field, counterpart, direction) },
      ] as const;
    }),
  );
  return (source, target) => {
    const selected = source[oneof.localName] as { case: string; value: unknown } | { case: undefined };
    const mapped = selected.case === undefined ? undefined : cases.get(selected.case);
    if (!mapped || selected.case === undefined) return;
    const { counterpart, translate } = mapped;
    target[counterpart.oneof?.localName ?? ''] = { case: counterpart.localName, value: translate(selected.value) };
  };
}

function requireCounterpart(field: DescField, to: DescMessage, { targetNameOf, converterOf }: Direction): DescField {
  const counterpart = to.fields.find(({ name }) => name === targetNameOf(field.name));
  const fits = counterpart && (converterOf(field.name) !== undefined || hasSameType(field, counterpart));
  if (counterpart && fits && (counterpart.oneof === undefined) === (field.oneof === undefined)) return counterpart;
  throw new Error(`compat: ${to.typeName} has no counterpart of ${field.parent.typeName}.${field.name}`);
}

/** The fields of message types are compared when their own translator is created. */
const hasSameType = (a: DescField, b: DescField): boolean =>
  JSON.stringify(shapeOf(a)) === JSON.stringify(shapeOf(b)) && (!a.enum || !b.enum || haveSameNumbers(a.enum, b.enum));

const shapeOf = (field: DescField) => ({
  kind: field.fieldKind,
  type: field.message ? 'message' : field.enum ? 'enum' : field.scalar,
  key: field.fieldKind === 'map' ? field.mapKey : undefined,
});

/**
 * One enum may have more values: enums are open, so the numbers are copied, and v2 refuses those that it does not
 * define.
 */
function haveSameNumbers(a: DescEnum, b: DescEnum): boolean {
  const [aNumbers, bNumbers] = [a, b].map(({ values }) => new Set(values.map(({ number }) => number)));
  return (
    aNumbers !== undefined && bNumbers !== undefined && (aNumbers.isSubsetOf(bNumbers) || bNumbers.isSubsetOf(aNumbers))
  );
}

function createValueTranslator(
  field: DescField,
  counterpart: DescField,
  direction: Direction,
): (value: unknown) => unknown {
  const convert = direction.converterOf(field.name);
  if (convert) return convert as (value: unknown) => unknown;
  if (!field.message || !counterpart.message || field.message === counterpart.message) return (value) => value;
  const translate = createTranslator(field.message, counterpart.message, direction) as (value: unknown) => unknown;
  switch (field.fieldKind) {
    case 'list':
      return (value) => (value as unknown[]).map(translate);
    case 'map':
      return (value) =>
        Object.fromEntries(Object.entries(value as Fields).map(([key, item]) => [key, translate(item)]));
    default:
      return translate;
  }
}
