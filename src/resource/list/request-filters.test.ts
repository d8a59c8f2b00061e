import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { ApiError, Code } from '../../base/errors.ts';
import { ListTagsRequestSchema } from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import {
  AdvisorySchema,
  EventTypeFilter,
  ListAdvisoriesRequestSchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { defineResource } from '../definition.ts';
import { createFilterReader } from './request-filters.ts';

const FIELDS = ['artifact_names', 'origin', 'exclude_event_authors', 'event_types', 'latest_event_type', 'query'];
const fields = ListAdvisoriesRequestSchema.fields.filter(({ name }) => FIELDS.includes(name));

const spec = {
  kind: 'sample',
  plural: 'samples',
  schema: AdvisorySchema,
  parents: ['group'],
  facets: { artifact_names: () => [], event_authors: () => [], event_types: () => [], latest_event_type: () => [] },
  filters: {
    origin: { anyOf: 'artifact_names', as: (value: string) => value.toUpperCase() },
    exclude_event_authors: { noneOf: 'event_authors' },
    query: { allOf: (text: string) => text.split(' ').map((word) => ({ field: 'artifact_names', values: [word] })) },
  },
};
const readConditions = createFilterReader(defineResource(spec), fields);

const filtersOf = (request: MessageInitShape<typeof ListAdvisoriesRequestSchema>) =>
  readConditions(create(ListAdvisoriesRequestSchema, request)).filters;

test('a filter matches any of the values, none of them, or all words of a text', () => {
  assert.deepEqual(filtersOf({ artifactNames: ['a', 'b'], eventTypes: [EventTypeFilter.FIXED] }), [
    { field: 'artifact_names', values: ['a', 'b'] },
    { field: 'event_types', values: ['3'] },
  ]);
  assert.deepEqual(filtersOf({ origin: 'a' }), [{ field: 'artifact_names', values: ['A'] }]);
  assert.deepEqual(filtersOf({ excludeEventAuthors: ['a'] }), [
    { field: 'event_authors', values: ['a'], excludes: true },
  ]);
  assert.deepEqual(filtersOf({ query: 'a b' }), [
    { field: 'artifact_names', values: ['a'] },
    { field: 'artifact_names', values: ['b'] },
  ]);
});

test('a field that is not set is no filter', () => {
  assert.deepEqual(filtersOf({}), []);
  assert.deepEqual(filtersOf({ origin: '', query: '', latestEventType: EventTypeFilter.UNSPECIFIED }), []);
});

test('an error names the invalid value', () => {
  const bad = (request: MessageInitShape<typeof ListAdvisoriesRequestSchema>, message: RegExp) =>
    assert.throws(
      () => filtersOf(request),
      (error) => error instanceof ApiError && error.code === Code.INVALID_ARGUMENT && message.test(error.message),
    );
  bad({ artifactNames: ['a', ''] }, /: artifact_names\[1\]: must not be empty$/);
  bad({ artifactNames: Array.from({ length: 101 }, String) }, /: artifact_names: must have at most 100 values$/);
  bad(
    { eventTypes: [EventTypeFilter.FIXED, EventTypeFilter.UNSPECIFIED] },
    /: event_types\[1\]: must be one of EVENT_TY/,
  );
  bad({ eventTypes: [99 as EventTypeFilter] }, /: event_types\[0\]: must be one of EVENT_TYPE_FILTER_DETECTION, /);
  bad({ latestEventType: 99 as EventTypeFilter }, /: latest_event_type: must be one of EVENT_TYPE_FILTER_DETECTION, /);
  bad({ query: 'a '.repeat(21) }, /: query: must have at most 20 words$/);
});

test('a flag without presence is no filter while it is false', () => {
  const flag = ListTagsRequestSchema.fields.filter(({ name }) => name === 'include_dates');
  const flagged = createFilterReader(
    defineResource({ ...spec, facets: { include_dates: () => [] }, filters: {} }),
    flag,
  );
  assert.deepEqual(flagged(create(ListTagsRequestSchema, {})).filters, []);
  assert.deepEqual(flagged(create(ListTagsRequestSchema, { includeDates: true })).filters, [
    { field: 'include_dates', values: ['true'] },
  ]);
});

test('refuses a filter for several values of a sort key, or one that excludes a value', () => {
  const orders = { artifact_names: () => '', event_authors: () => '' };
  const only = (name: string) => fields.filter((field) => field.name === name);
  const ordered = defineResource({ ...spec, orders });
  assert.throws(() => createFilterReader(ordered, only('artifact_names')), /filter artifact_names by one value only/);
  assert.throws(
    () => createFilterReader(ordered, only('exclude_event_authors')),
    /filter event_authors by one value only/,
  );
  assert.ok(createFilterReader(ordered, only('origin')));
});

test('refuses a filter that the resource does not declare', () => {
  const { filters: _, ...without } = spec;
  assert.throws(
    () => createFilterReader(defineResource(without), fields),
    /origin: the sample resource declares no such/,
  );
});
