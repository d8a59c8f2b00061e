import type { DescMethodUnary } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { capabilityName } from '../../contract/capabilities.ts';
import { commentOn, commentOnMember, humanName, inlineCode, splitSentence } from '../../contract/comments.ts';
import type { EventSpec, Method } from '../../contract/method.ts';
import { exampleBody, exampleParameter, exampleResponse } from './examples.ts';
import { fieldAt, parametersOf } from './parameters.ts';
import type { OpenApiRoute } from './paths.ts';
import type { Schemas } from './schemas.ts';
import type { MediaType, Operation, Response } from './types.ts';

/** Describes one route of a method. */
export function operation(openApiRoute: OpenApiRoute, operationId: string, tag: string, schemas: Schemas): Operation {
  const { method, route } = openApiRoute;
  const [summary, details] = splitSentence(commentOnMember(method.desc));
  const requestBody = bodyOf(openApiRoute, schemas);
  return {
    operationId,
    tags: [tag],
    summary: summary || humanName(method.desc.name),
    description: [details, accessText(method), eventText(method)].filter((text) => text !== '').join('\n\n'),
    ...(method.desc.deprecated && { deprecated: true }),
    parameters: parametersOf(openApiRoute, schemas),
    ...(requestBody !== undefined && { requestBody }),
    responses: { 200: responseOf(method.desc, schemas), default: { $ref: '#/components/responses/Error' } },
    ...(method.access === 'public' && { security: [] }),
    ...(method.access === 'optional' && { security: [{}, { bearer: [] }] }),
    'x-wharf-grpc-method': method.id,
    'x-wharf-path-template': route.template,
    'x-wharf-capabilities': method.capabilities.map(capabilityName),
    ...(method.event !== undefined && { 'x-wharf-event': describedEvent(method.event) }),
  };
}

/** `a, b and c`. */
const conjunction = new Intl.ListFormat('en-GB');

function accessText(method: Method): string {
  const capabilities = conjunction.format(method.capabilities.map(capabilityName).map(inlineCode));
  if (method.access === 'public') return 'Needs no token.';
  if (method.access === 'optional') return 'Needs no token. With one, the response may contain more.';
  if (capabilities === '') return 'Needs a valid token, but no capability.';
  if (method.access === 'server') return `Needs ${capabilities} for the whole server, which operators have.`;
  if (method.access === 'unscoped')
    return `Needs ${capabilities}; the result is restricted to groups where the caller has it.`;
  return `Needs ${capabilities} at ${inlineCode(method.scope.at(-1) ?? '')}.`;
}

const describedEvent = ({ type, extensions, audience }: EventSpec) => ({
  ...{ type, extensions, audience },
});

function eventText({ event }: Method): string {
  if (event === undefined) return '';
  const audience = event.audience === 'customer' ? 'subscribers of the organization' : 'the operator of the server';
  return `Emits the event ${inlineCode(event.type)}, for ${audience}.`;
}

function bodyOf({ method, route, variables }: OpenApiRoute, schemas: Schemas): Operation['requestBody'] {
  if (route.body === undefined) return undefined;
  const prefix = route.body === '*' ? '' : `${route.body}.`;
  const field = route.body === '*' ? undefined : fieldAt(method.desc.input, route.body);
  if (field?.enum !== undefined) {
    const content = { schema: schemas.ofField(field), example: exampleParameter(field) };
    return { required: true, content: { 'application/json': content } };
  }
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

function responseOf({ output }: DescMethodUnary, schemas: Schemas): Response {
  if (output.typeName === EmptySchema.typeName) return { description: 'Success. The response has no body.' };
  return {
    description: commentOn(output) || 'Success.',
    content: { 'application/json': { schema: schemas.ofMessage(output), example: exampleResponse(output) } },
  };
}
