import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getExtension, hasExtension, type Message } from '@bufbuild/protobuf';
import type { GenExtension } from '@bufbuild/protobuf/codegenv2';
import { bit, CapabilitySchema, internal_only, name } from './gen/capabilities/capabilities_pb.js';
import { http } from './gen/google/api/annotations_pb.js';
import { field_behavior } from './gen/google/api/field_behavior_pb.js';
import { access, event, scope } from './gen/wharfinger/options/v1/options_pb.js';
import { files } from './method-table.ts';
import { capabilityOptions, fieldOptions, methodOptions } from './options.ts';

type Element<O extends Message> = { readonly proto: { readonly options?: O | undefined } };

/** Compares what `read` returns for each element with the value of the extension, or with `unset`. */
function assertSame<O extends Message, V, E extends Element<O>>(
  elements: readonly E[],
  option: GenExtension<O, V>,
  read: (element: E) => V | undefined,
  unset: V | undefined,
): void {
  let set = 0;
  for (const element of elements) {
    const { options } = element.proto;
    const isSet = options !== undefined && hasExtension(options, option);
    assert.deepEqual(read(element), isSet ? getExtension(options, option) : unset);
    if (isSet) set++;
  }
  assert.ok(set > 0, `no element has ${option.typeName}`);
}

test('every option of the contract has the value that the protobuf library reads as an extension', () => {
  const methods = files.flatMap((file) => file.services.flatMap((service) => service.methods));
  assertSame(methods, http, (method) => methodOptions(method).http, undefined);
  assertSame(methods, access, (method) => methodOptions(method).access, undefined);
  assertSame(methods, event, (method) => methodOptions(method).event, undefined);
  const fields = files.flatMap((file) => file.messages.flatMap((message) => message.fields));
  assertSame(fields, scope, (field) => fieldOptions(field).scope, false);
  assertSame(fields, field_behavior, (field) => fieldOptions(field).fieldBehavior, []);
  assertSame(CapabilitySchema.values, name, (value) => capabilityOptions(value).name, '');
  assertSame(CapabilitySchema.values, bit, (value) => capabilityOptions(value).bit, 0);
  assertSame(CapabilitySchema.values, internal_only, (value) => capabilityOptions(value).internalOnly, false);
});

test('the options of a field are decoded once', () => {
  const [field] = files.flatMap((file) => file.messages.flatMap((message) => message.fields));
  assert.ok(field);
  assert.equal(fieldOptions(field), fieldOptions(field));
});
