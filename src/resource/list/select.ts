import type { DescField, Message } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';
import { type Resource, timeKey } from '../definition.ts';
import { SHOWN } from '../membership.ts';
import type { Filter, Selection } from './plan.ts';

const MAX_FILTER_VALUES = 100;

/** Reads what a request selects by its own `fields`; one that the resource does not declare stops the server from starting. */
export function createSelector(resource: Resource, fields: readonly DescField[]): (request: Message) => Selection {
  const { hidden = {}, since = {}, facets = {}, references = {}, sortKeys } = resource;
  const flags = fields.filter(({ name }) => name in hidden);
  const bounds = fields.filter(({ name }) => name in since);
  const filters = fields.filter((field) => !flags.includes(field) && !bounds.includes(field));
  const unknown = filters.find(({ name }) => ![sortKeys, facets, references].some((declared) => name in declared));
  if (unknown) {
    throw new Error(
      `${unknown.parent.typeName}.${unknown.name}: the ${resource.kind} resource declares no such filter`,
    );
  }

  return (request) => {
    const holder = request as unknown as Readonly<Record<string, unknown>>;
    const shown = flags.filter(({ localName }) => holder[localName] === true).map(({ name }) => name);
    const bound = bounds.find(({ localName }) => holder[localName] !== undefined);
    return {
      filters: filters.flatMap((field) => readFilter(field, holder[field.localName])),
      parts: shown.length === Object.keys(hidden).length ? undefined : [SHOWN, ...shown],
      since: bound && { field: since[bound.name] ?? '', key: boundKey(holder[bound.localName] as Timestamp) },
    };
  };
}

function readFilter({ name }: DescField, value: unknown): Filter[] {
  const values = (Array.isArray(value) ? value : [value]).filter((v) => v !== undefined && v !== '' && v !== 0);
  if (values.length === 0) return [];
  if (values.length > MAX_FILTER_VALUES) throw invalid(name, `must have at most ${MAX_FILTER_VALUES} values`);
  return [{ field: name, values: values.map(String) }];
}

/** Times are kept in milliseconds: a bound between two of them is the later one. */
const boundKey = ({ seconds, nanos }: Timestamp): string =>
  timeKey(Math.max(0, Number(seconds) * 1000 + Math.ceil(nanos / 1e6)));
