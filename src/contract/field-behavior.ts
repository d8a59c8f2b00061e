import type { DescField } from '@bufbuild/protobuf';
import { FieldBehavior, field_behavior } from './gen/google/api/field_behavior_pb.js';
import { optionOf } from './options.ts';

const known = new WeakMap<DescField, ReadonlySet<FieldBehavior>>();

/** What `google.api.field_behavior` says about a field; read from the descriptor once. */
export function fieldBehaviors(field: DescField): ReadonlySet<FieldBehavior> {
  let behaviors = known.get(field);
  if (behaviors === undefined) {
    behaviors = new Set(optionOf(field, field_behavior));
    known.set(field, behaviors);
  }
  return behaviors;
}

export const isRequired = (field: DescField): boolean => fieldBehaviors(field).has(FieldBehavior.REQUIRED);
/** Set by the server; accepted and ignored when a client sends it. */
export const isOutputOnly = (field: DescField): boolean => fieldBehaviors(field).has(FieldBehavior.OUTPUT_ONLY);
/** Taken from a client, never given back. */
export const isInputOnly = (field: DescField): boolean => fieldBehaviors(field).has(FieldBehavior.INPUT_ONLY);
/** Given at creation and never changed after. */
export const isImmutable = (field: DescField): boolean => fieldBehaviors(field).has(FieldBehavior.IMMUTABLE);
