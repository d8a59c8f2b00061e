import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { code, commentOnMember } from '../../contract/comments.ts';
import { isRequired } from '../../contract/field-behavior.ts';
import { exampleParameter, exampleText } from './examples.ts';
import type { Placed } from './paths.ts';
import { isPlainValue, type Schemas } from './schemas.ts';
import type { Parameter, Schema } from './types.ts';

/** What a request carries in its path and its query. */
export const parametersOf = (placed: Placed, schemas: Schemas): readonly Parameter[] => [
  ...pathParameters(placed),
  ...queryParameters(placed, schemas),
];

/** Follows a path of proto names from a message to a field. */
export function fieldAt(message: DescMessage, path: string): DescField | undefined {
  const [first, ...rest] = path.split('.');
  const field = message.fields.find((candidate) => candidate.name === first);
  if (rest.length === 0) return field;
  return field?.message === undefined ? undefined : fieldAt(field.message, rest.join('.'));
}

function pathParameters({ method, variables }: Placed): Parameter[] {
  return variables.map(({ field: path, name, slashes }) => {
    const field = fieldAt(method.desc.input, path);
    if (field === undefined) throw new Error(`openapi: ${method.id} has no request field ${path}`);
    // `**` also takes nothing at all, which means something where the contract does not ask for a value.
    const optional = slashes && field.parent === method.desc.input && !isRequired(field);
    const description = [
      commentOnMember(field),
      !path.endsWith(name) && `Fills ${code(path)} of the request.`,
      slashes && 'Slashes are sent as they are, or as `%2F`.',
      optional && 'May be left out, together with the slash before it.',
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

/** Bounds that hold for every list. */
const listBounds: Readonly<Record<string, Schema>> = {
  page_size: { minimum: 0, default: 50 },
  skip: { minimum: 0, default: 0 },
};

function queryParameters({ method, route, variables }: Placed, schemas: Schemas): Parameter[] {
  if (route.body === '*') return [];
  const filledElsewhere = new Set([route.body, ...variables.map((variable) => variable.field)]);

  function walk(message: DescMessage, prefix: string, above: readonly DescMessage[]): Parameter[] {
    return message.fields.flatMap((field): Parameter[] => {
      const name = prefix + field.name;
      if (filledElsewhere.has(name) || field.fieldKind === 'map') return [];
      if (field.message === undefined || isPlainValue(field.message)) {
        return [queryParameter(name, field, { ...schemas.ofField(field), ...listBounds[name] })];
      }
      if (field.fieldKind === 'list') {
        return [queryParameter(name, field, jsonTexts(schemas.ofMessage(field.message)))];
      }
      if (above.includes(field.message)) return [];
      return walk(field.message, `${name}.`, [...above, field.message]);
    });
  }
  return walk(method.desc.input, '', [method.desc.input]);
}

/** A list of messages travels in a query as one JSON text for each. */
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
