import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { commentOnMember, inlineCode } from '../../contract/comments.ts';
import { isRequired } from '../../contract/field-behavior.ts';
import { exampleParameter, exampleText } from './examples.ts';
import type { OpenApiRoute } from './paths.ts';
import { isPlainValue, type Schemas } from './schemas.ts';
import type { Parameter, Schema } from './types.ts';

/** The path and query parameters of a route. */
export const parametersOf = (route: OpenApiRoute, schemas: Schemas): readonly Parameter[] => [
  ...pathParameters(route),
  ...queryParameters(route, schemas),
];

/** Follows a path of proto names from a message to a field. */
export function fieldAt(message: DescMessage, path: string): DescField | undefined {
  const [first, ...rest] = path.split('.');
  const field = message.fields.find((candidate) => candidate.name === first);
  if (rest.length === 0) return field;
  return field?.message === undefined ? undefined : fieldAt(field.message, rest.join('.'));
}

function pathParameters({ method, variables }: OpenApiRoute): Parameter[] {
  return variables.map(({ field: path, name, slashes }) => {
    const field = fieldAt(method.desc.input, path);
    if (field === undefined) throw new Error(`openapi: ${method.id} has no request field ${path}`);
    // `**` also matches an empty value, which is valid if the field is not required.
    const optional = slashes && field.parent === method.desc.input && !isRequired(field);
    const description = [
      commentOnMember(field),
      !path.endsWith(name) && `Sets ${inlineCode(path)} of the request.`,
      slashes && 'Slashes may be sent as they are or as `%2F`.',
      optional && 'May be omitted, together with the slash before it.',
    ]
      .filter(Boolean)
      .join(' ');
    return {
      name,
      in: 'path',
      required: true,
      ...(description !== '' && { description }),
      schema: { type: 'string' },
      example: exampleText(field),
      ...(path !== name && { 'x-wharf-field': path }),
      ...(slashes && { 'x-wharf-slashes': true }),
      ...(optional && { 'x-wharf-optional': true }),
    };
  });
}

/** The bounds and defaults of every List method. */
const listBounds: Readonly<Record<string, Schema>> = {
  page_size: { minimum: 0, default: 50 },
  skip: { minimum: 0, default: 0 },
};

function queryParameters({ method, route, variables }: OpenApiRoute, schemas: Schemas): Parameter[] {
  if (route.body === '*') return [];
  const setElsewhere = new Set([route.body, ...variables.map((variable) => variable.field)]);

  function walk(message: DescMessage, prefix: string, ancestors: readonly DescMessage[]): Parameter[] {
    return message.fields.flatMap((field): Parameter[] => {
      const name = prefix + field.name;
      if (setElsewhere.has(name) || field.fieldKind === 'map') return [];
      if (field.message === undefined || isPlainValue(field.message)) {
        return [queryParameter(name, field, { ...schemas.ofField(field), ...listBounds[name] })];
      }
      if (field.fieldKind === 'list') {
        return [queryParameter(name, field, jsonTexts(schemas.ofMessage(field.message)))];
      }
      if (ancestors.includes(field.message)) return [];
      return walk(field.message, `${name}.`, [...ancestors, field.message]);
    });
  }
  return walk(method.desc.input, '', [method.desc.input]);
}

/** In a query, each message of a list is sent as JSON text. */
const jsonTexts = (message: Schema): Schema => ({
  type: 'array',
  items: { type: 'string', contentMediaType: 'application/json', contentSchema: message },
});

function queryParameter(name: string, field: DescField, schema: Schema): Parameter {
  const description = commentOnMember(field);
  return {
    name,
    in: 'query',
    ...(description !== '' && { description }),
    ...(isRequired(field) && { required: true, example: exampleParameter(field) }),
    ...(field.deprecated && { deprecated: true }),
    ...(field.fieldKind === 'list' && { explode: true }),
    schema,
  };
}
