import type { DescField } from '@bufbuild/protobuf';
import { FieldBehavior } from './gen/google/api/field_behavior_pb.js';
import { fieldOptions } from './options.ts';

const hasBehavior = (field: DescField, behavior: FieldBehavior): boolean =>
  fieldOptions(field).fieldBehavior.includes(behavior);

export const isRequired = (field: DescField): boolean => hasBehavior(field, FieldBehavior.REQUIRED);
/** Set by the server; accepted and ignored when a client sends it. */
export const isOutputOnly = (field: DescField): boolean => hasBehavior(field, FieldBehavior.OUTPUT_ONLY);
/** Accepted from a client, never part of a response. */
export const isInputOnly = (field: DescField): boolean => hasBehavior(field, FieldBehavior.INPUT_ONLY);
/** Set when the resource is created and never changed. */
export const isImmutable = (field: DescField): boolean => hasBehavior(field, FieldBehavior.IMMUTABLE);
