import { type DescField, hasOption, type Message, ScalarType } from '@bufbuild/protobuf';
import type { FieldViolation } from '../base/errors.ts';
import { isRequired } from '../contract/field-behavior.ts';
import { resource } from '../contract/gen/google/api/resource_pb.js';
import type { Method } from '../contract/method.ts';
import { refuse, validate } from '../resource/validate.ts';

interface Checks {
  /** The fields to look at. */
  readonly fields: ReadonlySet<string>;
  /** Their local names, where all of them are required texts: then a glance is enough. */
  readonly texts: readonly string[] | undefined;
}

const known = new WeakMap<Method, Checks>();

/** Refuses a request that lacks a REQUIRED field. Resources in it are judged by the engine, by their own rules. */
export function validateRequest(method: Method, request: Message): void {
  let checks = known.get(method);
  if (!checks) {
    checks = checksOf(method);
    known.set(method, checks);
  }
  const { fields, texts } = checks;
  if (texts?.every((name) => (request as unknown as Record<string, unknown>)[name])) return;
  refuse(validate(method.desc.input, request, {}, fields).filter((violation) => !isInherited(violation)));
}

function checksOf({ desc: { input }, routes }: Method): Checks {
  const bodies = new Set(routes.map((route) => route.body));
  const isJudgedLater = (field: DescField): boolean => bodies.has(field.name) || isListOfResources(field);
  const fields = input.fields.filter((field) => mayLack(field) && !isJudgedLater(field));
  return {
    fields: new Set(fields.map(({ name }) => name)),
    texts: fields.every(isText) ? fields.map(({ localName }) => localName) : undefined,
  };
}

const isText = (field: DescField): boolean =>
  field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING && field.oneof === undefined;

const isListOfResources = (field: DescField): boolean =>
  field.fieldKind === 'list' && field.message !== undefined && hasOption(field.message, resource);

/** Whether something REQUIRED can be missing: the field itself, or one inside of it. */
const mayLack = (field: DescField): boolean => isRequired(field) || field.message !== undefined;

/** The requests of a batch may leave their parent to the batch (AIP-231). */
const isInherited = ({ field }: FieldViolation): boolean => /^requests\[[0-9]+\]\.parent$/.test(field);
