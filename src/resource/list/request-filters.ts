import type { DescField, Message } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, type Timestamp } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';
import { type Resource, timeKey, VISIBLE } from '../definition.ts';
import type { Filter, Selection } from './plan.ts';

const MAX_VALUES = 100;
/** Each is one more thing to check in each row. */
const MAX_WORDS = 20;

/** Reads what a request selects by its own `fields`; one that the resource does not declare stops the server from starting. */
export function requestFilters(resource: Resource, fields: readonly DescField[]): (request: Message) => Selection {
  const { hidden = {}, since = {} } = resource;
  const flags = fields.filter(({ name }) => name in hidden);
  const bounds = fields.filter(({ name }) => name in since);
  const filters = fields.filter((field) => !flags.includes(field) && !bounds.includes(field));
  for (const field of filters) {
    const problem = problemWith(resource, field);
    if (problem) throw new Error(`${field.parent.typeName}.${field.name}: the ${resource.kind} resource ${problem}`);
  }

  return (request) => {
    const holder = request as unknown as Readonly<Record<string, unknown>>;
    const shown = flags.filter(({ localName }) => holder[localName] === true).map(({ name }) => name);
    const bound = bounds.find(({ localName }) => holder[localName] !== undefined);
    return {
      filters: filters.flatMap((field) => readFilter(resource, field, holder[field.localName])),
      parts: shown.length === Object.keys(hidden).length ? undefined : [VISIBLE, ...shown],
      since: bound && { field: since[bound.name] ?? '', key: boundKey(holder[bound.localName] as Timestamp) },
    };
  };
}

/** What is wrong with how a resource declares the filter of a request field. */
function problemWith({ filters = {}, sortKeys, values }: Resource, { name, fieldKind }: DescField): string | undefined {
  const spec = filters[name] ?? { anyOf: name };
  if ('allOf' in spec) return undefined;
  const asked = 'anyOf' in spec ? spec.anyOf : spec.noneOf;
  // The listing index finds one value of a sort key, not several, and not all others.
  if (asked in sortKeys && ('noneOf' in spec || fieldKind === 'list')) return `can filter ${asked} by one value only`;
  return asked in sortKeys || asked in values ? undefined : 'declares no such filter';
}

function readFilter(resource: Resource, field: DescField, asked: unknown): Filter[] {
  const spec = resource.filters?.[field.name] ?? { anyOf: field.name };
  const values = Array.isArray(asked) ? readList(field, asked) : readOne(field, asked);
  if (values.length === 0) return [];
  if ('anyOf' in spec) return [{ field: spec.anyOf, values: spec.as ? values.map(spec.as) : values }];
  if ('noneOf' in spec) return [{ field: spec.noneOf, values, excludes: true }];
  const words = values.flatMap((value) => spec.allOf(value));
  if (words.length > MAX_WORDS) throw invalid(field.name, `must have at most ${MAX_WORDS} words`);
  return words;
}

function readList(field: DescField, asked: readonly unknown[]): string[] {
  if (asked.length > MAX_VALUES) throw invalid(field.name, `must have at most ${MAX_VALUES} values`);
  return asked.map((value, at) => {
    const path = `${field.name}[${at}]`;
    if (value === '') throw invalid(path, 'must not be empty');
    return readValue(field, path, value);
  });
}

/** What is not set asks for nothing. Most fields cannot tell whether they are set: their zero asks for nothing either. */
const readOne = (field: DescField, asked: unknown): string[] =>
  asked === undefined || asked === '' || asked === 0 || (asked === false && !isOptional(field))
    ? []
    : [readValue(field, field.name, asked)];

const isOptional = ({ presence }: DescField): boolean => presence === FeatureSet_FieldPresence.EXPLICIT;

function readValue(field: DescField, path: string, value: unknown): string {
  const known = field.enum?.values.filter(({ number }) => number !== 0);
  if (known && !known.some(({ number }) => number === value)) {
    throw invalid(path, `must be one of ${known.map(({ name }) => name).join(', ')}`);
  }
  return String(value);
}

/** Times are kept in milliseconds: a bound between two of them is the later one. */
const boundKey = ({ seconds, nanos }: Timestamp): string =>
  timeKey(Math.max(0, Number(seconds) * 1000 + Math.ceil(nanos / 1e6)));
