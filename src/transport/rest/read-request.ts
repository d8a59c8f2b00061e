import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import { hasMoreValues } from '../../base/json-values.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { startSlices } from '../../base/slices.ts';
import { fieldReader, messageReader } from '../../contract/json/decode.ts';
import { readMessageInSlices } from '../../contract/json/decode-slices.ts';
import { newMessage } from '../../contract/json/field-names.ts';
import type { Fields } from '../../contract/json/fields.ts';
import { parseJson } from '../../contract/json/parse.ts';
import { presentPaths } from '../../contract/json/present-paths.ts';
import type { UnknownNames, Violations } from '../../contract/json/violations.ts';
import { collectViolations, quotable } from '../../contract/json/violations.ts';
import { DEFAULT_MAX_VALUES, type Method, type Route } from '../../contract/method.ts';
import { tooManyValues } from '../../contract/too-many-values.ts';
import { locateField } from './field-path.ts';
import { readableParameters, readParameters, readSingleParameter } from './query-parameters.ts';
import type { PathValue } from './router.ts';

export interface Body {
  readonly type: 'json' | 'form';
  readonly text: string;
}

/** The parts of an HTTP request that contain fields of the request message. */
export interface RequestParts {
  readonly variables: readonly PathValue[];
  /** Without its question mark. */
  readonly query: string;
  readonly body: Body | undefined;
}

/** Builds the request message. Throws INVALID_ARGUMENT with the field violations. */
export type RequestReader = (parts: RequestParts) => MaybePromise<Message>;

/** Whether a request may have a form as its body. */
export const takesForm = ({ verb, body }: Route): boolean => verb === 'POST' && body === undefined;

/** A body of at most this many characters is decoded at once, whatever it contains. */
const MAX_UNSLICED = 64 * 1024;

/**
 * The gateway of v1 ignores what it does not know, and its clients depend on it: they send fields and parameters of other
 * versions, and parameters and bodies where the method takes none. v2 refuses them, which finds typing errors.
 */
const unknownNamesOf = ({ isV1 }: Method): UnknownNames => (isV1 ? 'ignored' : 'refused');

export function requestReader(method: Method, route: Route): RequestReader {
  const { maxValues } = method;
  const { input } = method.desc;
  const unknownNames = unknownNamesOf(method);
  const bodyField = route.body === undefined || route.body === '*' ? undefined : fieldNamed(input, route.body);
  const readBody = bodyReader(input, route, bodyField);
  const deriveMask = maskDeriver(input, route, bodyField);
  const isSliced = maxValues > DEFAULT_MAX_VALUES && route.body === '*';

  function parseBody(body: Body | undefined): unknown {
    if (body?.type !== 'json') return undefined;
    if (hasMoreValues(body.text, maxValues)) throw tooManyValues('body', maxValues);
    return parseJson(body.text) ?? undefined;
  }

  async function readInSlices(parts: RequestParts): Promise<Message> {
    const problems = collectViolations(unknownNames);
    const slices = startSlices();
    const json = parseBody(parts.body);
    await slices.next();
    const message = await readMessageInSlices(input, json ?? {}, problems, slices);
    return finish(parts, json, message ?? newMessage(input), problems);
  }

  /** Adds the fields in path and query to a message with the fields of the body. */
  function finish(
    { variables, query, body }: RequestParts,
    json: unknown,
    message: Fields,
    problems: Violations,
  ): Message {
    const isForm = body?.type === 'form';
    if (query !== '' || isForm) {
      const parameters = readableParameters(isForm ? [query, body.text] : [query], maxValues, problems);
      if (route.body === '*') {
        for (const { name } of parameters) problems.reportUnknown(quotable(name), () => 'must be sent in the body');
      } else {
        const boundBy = (path: string) => {
          if (variables.some(({ field }) => field === path)) return 'the path';
          return bodyField !== undefined && `${path}.`.startsWith(`${bodyField.name}.`) ? 'the body' : undefined;
        };
        readParameters(input, message, parameters, boundBy, problems);
      }
    }

    // The path is read last, so that it overrides the same field in the body.
    for (const { field, text } of variables) {
      const location = locateField(input, message, field, problems);
      if (location !== undefined) readSingleParameter(location, text, problems);
    }
    problems.check();
    deriveMask?.(message, json);
    return message;
  }

  return (parts) => {
    if (isSliced && parts.body !== undefined && parts.body.text.length > MAX_UNSLICED) return readInSlices(parts);
    const problems = collectViolations(unknownNames);
    const json = parseBody(parts.body);
    return finish(parts, json, readBody(json, problems), problems);
  };
}

function bodyReader(
  input: DescMessage,
  route: Route,
  bodyField: DescField | undefined,
): (json: unknown, problems: Violations) => Fields {
  // Version 0.1.55 of the Go SDK sends JSON where later ones send a form.
  if (route.body === '*' || takesForm(route)) {
    const read = messageReader(input);
    return (json = {}, problems) => (read(json, '', problems) as Fields | undefined) ?? newMessage(input);
  }
  if (bodyField === undefined) {
    return (json, problems) => {
      // Some clients send {} with every request.
      if (json !== undefined && !isEmptyObject(json)) {
        problems.reportUnknown('body', () => 'must be empty; send fields in path and query');
      }
      return newMessage(input);
    };
  }
  const read = fieldReader(bodyField);
  // An empty body is an empty resource, so that the error names the missing fields instead of the body.
  const absent = bodyField.fieldKind === 'message' ? {} : undefined;
  return (json = absent, problems) => {
    const message = newMessage(input);
    const value = json === undefined ? undefined : read(json, '', problems);
    if (value !== undefined) message[bodyField.localName] = value;
    return message;
  };
}

/** For PATCH without an update mask: sets the mask to the fields that are present in the body. */
function maskDeriver(
  input: DescMessage,
  { verb, body }: Route,
  bodyField: DescField | undefined,
): ((message: Fields, json: unknown) => void) | undefined {
  const mask = input.fields.find(({ message }) => message?.typeName === FieldMaskSchema.typeName);
  if (verb !== 'PATCH' || mask === undefined) return undefined;
  // With the whole request as body, paths are relative to the resource in it.
  const prefix =
    body === '*' ? `${input.fields.find((field) => field !== mask && field.fieldKind === 'message')?.name}.` : '';
  const desc = bodyField?.message ?? input;
  return (message, json) => {
    const sent = message[mask.localName] as FieldMask | undefined;
    if (sent !== undefined && sent.paths.length > 0) return;
    const paths = presentPaths(desc, json)
      .filter((path) => path.startsWith(prefix))
      .map((path) => path.slice(prefix.length));
    message[mask.localName] = create(FieldMaskSchema, { paths });
  };
}

const isEmptyObject = (json: unknown) => typeof json === 'object' && json !== null && Object.keys(json).length === 0;

function fieldNamed({ typeName, fields }: DescMessage, name: string): DescField {
  const field = fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`route binds the body to ${typeName}.${name}, which does not exist`);
  return field;
}
