import { type DescField, hasOption, type Message } from '@bufbuild/protobuf';
import type { FieldViolation } from '../base/errors.ts';
import { isRequired } from '../contract/behavior.ts';
import { resource } from '../contract/gen/google/api/resource_pb.js';
import type { Method } from '../contract/method.ts';
import { refuse, validate } from '../resource/validate.ts';

const checkedFields = new WeakMap<Method, ReadonlySet<string>>();

/** Refuses a request that lacks a REQUIRED field. Resources in it are judged by the engine, by their own rules. */
export function validateRequest(method: Method, request: Message): void {
  let fields = checkedFields.get(method);
  if (!fields) {
    const bodies = new Set(method.routes.map((route) => route.body));
    const isJudgedLater = (field: DescField): boolean => bodies.has(field.name) || isListOfResources(field);
    fields = new Set(
      method.desc.input.fields.filter((field) => mayLack(field) && !isJudgedLater(field)).map(({ name }) => name),
    );
    checkedFields.set(method, fields);
  }
  refuse(validate(method.desc.input, request, {}, fields).filter((violation) => !isInherited(violation)));
}

const isListOfResources = (field: DescField): boolean =>
  field.fieldKind === 'list' && field.message !== undefined && hasOption(field.message, resource);

/** Whether something REQUIRED can be missing: the field itself, or one inside of it. */
const mayLack = (field: DescField): boolean => isRequired(field) || field.message !== undefined;

/** The requests of a batch may leave their parent to the batch (AIP-231). */
const isInherited = ({ field }: FieldViolation): boolean => /^requests\[[0-9]+\]\.parent$/.test(field);
