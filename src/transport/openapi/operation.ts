import type { DescMethodUnary } from '@bufbuild/protobuf';
import { getOption } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { code, commentOn, commentOnMember, humanName, splitSentence } from '../../contract/comments.ts';
import {
  type Capability,
  CapabilitySchema,
  name as capabilityName,
} from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Method } from '../../contract/method.ts';
import { exampleAnswer, exampleBody } from './examples.ts';
import { fieldAt, parametersOf } from './parameters.ts';
import type { Placed } from './paths.ts';
import type { Schemas } from './schemas.ts';
import type { MediaType, Operation, Response } from './types.ts';

/** Describes a method as it looks on one of its routes. */
export function operation(placed: Placed, operationId: string, tag: string, schemas: Schemas): Operation {
  const { method, route } = placed;
  const [summary, more] = splitSentence(commentOnMember(method.desc));
  const requestBody = bodyOf(placed, schemas);
  return {
    operationId,
    tags: [tag],
    summary: summary || humanName(method.desc.name),
    description: [more, accessText(method), eventText(method)].filter((text) => text !== '').join('\n\n'),
    ...(method.desc.deprecated && { deprecated: true }),
    parameters: parametersOf(placed, schemas),
    ...(requestBody !== undefined && { requestBody }),
    responses: { 200: answerOf(method.desc, schemas), default: { $ref: '#/components/responses/Error' } },
    ...(method.access === 'public' && { security: [] }),
    ...(method.access === 'optional' && { security: [{}, { bearer: [] }] }),
    'x-wharf-grpc-method': method.id,
    'x-wharf-path-template': route.template,
    'x-wharf-capabilities': method.capabilities.map(dotted),
    ...(method.event !== undefined && { 'x-wharf-event': method.event }),
  };
}

const dotted = (capability: Capability): string => {
  const value = CapabilitySchema.value[capability];
  return value === undefined ? String(capability) : getOption(value, capabilityName);
};

/** `a, b and c`. */
const listed = new Intl.ListFormat('en-GB');

function accessText(method: Method): string {
  const needed = listed.format(method.capabilities.map(dotted).map(code));
  if (method.access === 'public') return 'Needs no token.';
  if (method.access === 'optional') return 'Needs no token; with one, the caller may be shown more.';
  if (needed === '') return 'Needs a valid token and no capability.';
  if (method.access === 'unscoped') return `Needs ${needed}; the call reaches only where the caller holds it.`;
  return `Needs ${needed} at ${code(method.scope.at(-1) ?? '')}.`;
}

function eventText({ event }: Method): string {
  if (event === undefined) return '';
  const readers = event.audience === 'customer' ? 'subscribers of the organization' : 'whoever runs the server';
  return `Emits the event ${code(event.type)}, for ${readers}.`;
}

function bodyOf({ method, route, variables }: Placed, schemas: Schemas): Operation['requestBody'] {
  if (route.body === undefined) return undefined;
  const prefix = route.body === '*' ? '' : `${route.body}.`;
  const field = route.body === '*' ? undefined : fieldAt(method.desc.input, route.body);
  const message = route.body === '*' ? method.desc.input : field?.message;
  if (message === undefined) throw new Error(`openapi: ${method.id} has no message in request field ${route.body}`);

  const without = new Set(
    variables.filter(({ field }) => field.startsWith(prefix)).map(({ field }) => field.slice(prefix.length)),
  );
  const partial = route.verb === 'PATCH' && route.body !== '*';
  if (message.fields.every((field) => without.has(field.name))) return undefined;
  const schema = schemas.ofBody(message, { without, partial });
  const example = exampleBody(message, without);
  const content: MediaType =
    field?.fieldKind === 'list'
      ? { schema: { type: 'array', items: schema }, example: [example] }
      : { schema, example };
  return { required: true, content: { 'application/json': content } };
}

function answerOf({ output }: DescMethodUnary, schemas: Schemas): Response {
  if (output.typeName === EmptySchema.typeName) return { description: 'Done. The answer has no body.' };
  return {
    description: commentOn(output) || 'Done.',
    content: { 'application/json': { schema: schemas.ofMessage(output), example: exampleAnswer(output) } },
  };
}
