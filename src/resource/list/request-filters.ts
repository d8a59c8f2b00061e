import type { DescField, Message } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, type Timestamp } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';
import { type Resource, timeKey, VISIBLE } from '../definition.ts';
import type { Filter, KeyCondition, ListConditions } from './conditions.ts';

const MAX_VALUES = 100;
/** Each word is one more condition to check for each row. */
const MAX_WORDS = 20;

/**
 * Returns a function that reads the conditions of a request from its `fields`. Throws if the resource does not declare
 * one of the fields as a filter, so that the server does not start.
 */
export function createFilterReader(
  resource: Resource,
  fields: readonly DescField[],
): (request: Message) => ListConditions {
  const { hidden = {}, since = {}, before = {} } = resource;
  const flags = fields.filter(({ name }) => name in hidden);
  const readSince = boundReader(since, fields);
  const readBefore = boundReader(before, fields);
  const filterFields = fields.filter((field) => {
    return !flags.includes(field) && !(field.name in since) && !(field.name in before);
  });
  for (const field of filterFields) {
    const problem = problemWith(resource, field);
    if (problem) throw new Error(`${field.parent.typeName}.${field.name}: the ${resource.kind} resource ${problem}`);
  }

  return (request) => {
    const values = request as unknown as Readonly<Record<string, unknown>>;
    const included = flags.filter(({ localName }) => values[localName] === true).map(({ name }) => name);
    return {
      filters: filterFields.flatMap((field) => readFilter(resource, field, values[field.localName])),
      partitions: included.length === Object.keys(hidden).length ? undefined : [VISIBLE, ...included],
      since: readSince(values),
      before: readBefore(values),
    };
  };
}

/** Returns what is wrong with the filter that a resource declares for a request field, or undefined. */
function problemWith({ filters = {}, sortKeys, values }: Resource, { name, fieldKind }: DescField): string | undefined {
  const spec = filters[name] ?? { anyOf: name };
  if ('allOf' in spec) return undefined;
  const field = 'anyOf' in spec ? spec.anyOf : spec.noneOf;
  // The listing index can find one value of a sort key. It cannot find several values, or exclude one.
  if (field in sortKeys && ('noneOf' in spec || fieldKind === 'list')) return `can filter ${field} by one value only`;
  return field in sortKeys || field in values ? undefined : 'declares no such filter';
}

function readFilter(resource: Resource, field: DescField, value: unknown): Filter[] {
  const spec = resource.filters?.[field.name] ?? { anyOf: field.name };
  const values = Array.isArray(value) ? readList(field, value) : readSingle(field, value);
  if (values.length === 0) return [];
  if ('anyOf' in spec) return [{ field: spec.anyOf, values: spec.as ? values.map(spec.as) : values }];
  if ('noneOf' in spec) return [{ field: spec.noneOf, values, excludes: true }];
  const words = values.flatMap((text) => spec.allOf(text));
  if (words.length > MAX_WORDS) throw invalid(field.name, `must have at most ${MAX_WORDS} words`);
  return words;
}

function readList(field: DescField, values: readonly unknown[]): string[] {
  if (values.length > MAX_VALUES) throw invalid(field.name, `must have at most ${MAX_VALUES} values`);
  return values.map((value, at) => {
    const path = `${field.name}[${at}]`;
    if (value === '') throw invalid(path, 'must not be empty');
    return readValue(field, path, value);
  });
}

/** A field that is not set is no filter. Neither is the zero value: most fields do not have explicit presence. */
const readSingle = (field: DescField, value: unknown): string[] =>
  value === undefined || value === '' || value === 0 || (value === false && !hasPresence(field))
    ? []
    : [readValue(field, field.name, value)];

const hasPresence = ({ presence }: DescField): boolean => presence === FeatureSet_FieldPresence.EXPLICIT;

function readValue(field: DescField, path: string, value: unknown): string {
  const enumValues = field.enum?.values.filter(({ number }) => number !== 0);
  if (enumValues && !enumValues.some(({ number }) => number === value)) {
    throw invalid(path, `must be one of ${enumValues.map(({ name }) => name).join(', ')}`);
  }
  return String(value);
}

/** Returns a function that reads the first bound that a request has. `bounds` has sort keys by request field. */
function boundReader(
  bounds: Readonly<Record<string, string>>,
  fields: readonly DescField[],
): (values: Readonly<Record<string, unknown>>) => KeyCondition | undefined {
  const boundFields = fields.filter(({ name }) => name in bounds);
  return (values) => {
    const bound = boundFields.find(({ localName }) => values[localName] !== undefined);
    return bound && { field: bounds[bound.name] ?? '', key: boundKey(values[bound.localName] as Timestamp) };
  };
}

/** Rounded up, because times are stored in milliseconds. */
const boundKey = ({ seconds, nanos }: Timestamp): string =>
  timeKey(Math.max(0, Number(seconds) * 1000 + Math.ceil(nanos / 1e6)));
