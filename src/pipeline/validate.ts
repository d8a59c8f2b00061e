import type { Message } from '@bufbuild/protobuf';
import type { FieldViolation } from '../base/errors.ts';
import type { Method } from '../contract/method.ts';
import { refuse, validate } from '../resource/validate.ts';

const checkedFields = new WeakMap<Method, ReadonlySet<string>>();

/** Refuses a request that lacks a REQUIRED field. The resource in its body is judged by the engine, by its own rules. */
export function validateRequest(method: Method, request: Message): void {
  let fields = checkedFields.get(method);
  if (!fields) {
    const bodies = new Set(method.routes.map((route) => route.body));
    fields = new Set(method.desc.input.fields.map((field) => field.name).filter((name) => !bodies.has(name)));
    checkedFields.set(method, fields);
  }
  refuse(validate(method.desc.input, request, {}, fields).filter((violation) => !isInherited(violation)));
}

/** The requests of a batch may leave their parent to the batch (AIP-231). */
const isInherited = ({ field }: FieldViolation): boolean => /^requests\[[0-9]+\]\.parent$/.test(field);
