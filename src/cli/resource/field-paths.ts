import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import { isImmutable, isOutputOnly } from '../../contract/field-behavior.ts';
import { UIDPFilterSchema } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Method, Route } from '../../contract/method.ts';

/** A field that can be given on the command line, and the fields that lead to it. */
export interface Place {
  /** `claim-match.issuer` */
  readonly flag: string;
  readonly field: DescField;
  readonly path: readonly DescField[];
}

/** `claim_match.issuer`: how the contract writes a place. */
export const protoPath = ({ path }: Pick<Place, 'path'>): string => path.map(({ name }) => name).join('.');

/** What a client may set in a resource; on a change, without what only its creation can set. */
export const resourcePlaces = (resource: DescMessage, isChange: boolean): readonly Place[] =>
  placesIn(resource, (field) => !isOutputOnly(field) && !(isChange && isImmutable(field)));

/** What a request carries beside its path and its body. */
export function queryPlaces({ desc: { input } }: Method, { template, body }: Route): readonly Place[] {
  const bound = new Set([body, ...variablesOf(template)]);
  return placesIn(input, (field) => !bound.has(field.name) && field.message?.typeName !== FieldMaskSchema.typeName);
}

/** The variables of a route: `group.uid` for `/iam/v2/groups/{group.uid=**}`. */
export const variablesOf = (template: string): string[] =>
  [...template.matchAll(/\{([^}=]+)/g)].map(([, field = '']) => field);

function placesIn(
  message: DescMessage,
  isOffered: (field: DescField) => boolean,
  above: readonly DescField[] = [],
  prefix = '',
): readonly Place[] {
  return message.fields.filter(isOffered).flatMap((field): readonly Place[] => {
    const path = [...above, field];
    const name = field.name.replaceAll('_', '-');
    if (field.fieldKind !== 'message' || isValue(field.message)) return [{ flag: prefix + name, field, path }];
    // A type that holds itself has no end.
    if (above.some((outer) => outer.message === field.message)) return [];
    // Where in the tree to look is what people ask for most.
    const deeper = field.message.typeName === UIDPFilterSchema.typeName ? prefix : `${prefix}${name}.`;
    return placesIn(field.message, isOffered, path, deeper);
  });
}

/** Times and durations are messages to protobuf and one text in JSON. */
const isValue = ({ typeName }: DescMessage): boolean => typeName.startsWith('google.protobuf.');
