import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getExtension, hasExtension, type Message } from '@bufbuild/protobuf';
import type { GenExtension } from '@bufbuild/protobuf/codegenv2';
import { bit, CapabilitySchema, internal_only, name } from './gen/capabilities/capabilities_pb.js';
import { http } from './gen/google/api/annotations_pb.js';
import { field_behavior } from './gen/google/api/field_behavior_pb.js';
import { access, event, scope } from './gen/wharfinger/options/v1/options_pb.js';
import { files } from './method-table.ts';
import { optionOf } from './options.ts';

function assertSame<O extends Message, V>(
  elements: readonly { readonly proto: { readonly options?: O | undefined } }[],
  option: GenExtension<O, V>,
): void {
  let set = 0;
  for (const element of elements) {
    const { options } = element.proto;
    const expected = options && hasExtension(options, option) ? getExtension(options, option) : undefined;
    assert.deepEqual(optionOf(element, option), expected);
    if (expected !== undefined) set++;
  }
  assert.ok(set > 0, `nothing has ${option.typeName}`);
}

test('every option of the contract reads as the library reads it', () => {
  const methods = files.flatMap((file) => file.services.flatMap((service) => service.methods));
  assertSame(methods, http);
  assertSame(methods, access);
  assertSame(methods, event);
  const fields = files.flatMap((file) => file.messages.flatMap((message) => message.fields));
  assertSame(fields, scope);
  assertSame(fields, field_behavior);
  assertSame(CapabilitySchema.values, name);
  assertSame(CapabilitySchema.values, bit);
  assertSame(CapabilitySchema.values, internal_only);
});
