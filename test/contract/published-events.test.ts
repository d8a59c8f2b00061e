import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, type DescMessage } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { eventSource, REGISTRY_SOURCE } from '../../src/contract/event-source.ts';
import { ociFiles, v1Files, v2Files } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { methodOptions } from '../../src/contract/options.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';
import { type BodyNames, publishedEvents, readBodyNames } from '../support/published-events.ts';

const registry = createRegistry(...v1Files, ...v2Files);
const methods = withV2beta1(methodTable([...v1Files, ...v2Files, ...ociFiles])).filter(({ event }) => event);

/** The published names that a message does not have. The page prints oneofs by the name of the oneof in Go. */
function missingNames(schema: DescMessage, names: BodyNames): string[] {
  return [...names].flatMap(([name, nested]) => {
    if (schema.oneofs.some((oneof) => oneof.name === name.toLowerCase())) return [];
    const field = schema.fields.find((candidate) => candidate.name === name);
    if (!field) return [`${schema.typeName}.${name}`];
    const { message } = field;
    return nested && message && !message.typeName.startsWith('google.protobuf.') ? missingNames(message, nested) : [];
  });
}

const versionOf = (path: string): string => path.split('/')[2] ?? '';

for (const { type, sources, body } of publishedEvents) {
  const emitting = methods.filter(({ event }) => event?.type === type);
  for (const method of emitting) {
    test(`${method.id} emits ${type} as published`, () => {
      const source = eventSource(method);
      if (sources.length === 0) {
        assert.equal(source, REGISTRY_SOURCE);
        return;
      }
      // v2 is v2beta1 under its final name.
      const ofVersion = sources
        .map((path) => path.replace('/v2beta1/', `/${versionOf(source) === 'v2' ? 'v2' : 'v2beta1'}/`))
        .filter((path) => versionOf(path) === versionOf(source));
      if (ofVersion.length > 0) assert.ok(ofVersion.includes(source), `${source} is not one of ${ofVersion.join()}`);

      // The methods of v1 declare the body. Those of v2 emit the same one: test/blackbox/published-events.test.ts.
      if (versionOf(source) !== 'v1') return;
      const { input, output } = method.desc;
      const { bodyType } = methodOptions(method.desc).event ?? assert.fail();
      const declared = bodyType === '' ? undefined : (registry.getMessage(bodyType) ?? assert.fail(bodyType));
      const schema = declared ?? (output.typeName === EmptySchema.typeName ? input : output);
      assert.deepEqual(missingNames(schema, readBodyNames(body)), []);
    });
  }
}

test('events of this server that are published', () => {
  const emitted = new Set(methods.map(({ event }) => event?.type));
  const published = publishedEvents.filter(({ type }) => emitted.has(type));
  assert.ok(published.length >= 41, `${published.length}`);
});
