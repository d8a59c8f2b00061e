import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import { isImmutable, isOutputOnly } from '../../contract/field-behavior.ts';
import { UIDPFilterSchema } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Method, Route } from '../../contract/method.ts';

/** A field that a flag sets, with the path to it. */
export interface FieldPath {
  /** The name of the flag, such as `claim-match.issuer`. */
  readonly flag: string;
  readonly field: DescField;
  readonly path: readonly DescField[];
}

/** The path in the contract's notation, such as `claim_match.issuer`. */
export const protoPath = ({ path }: Pick<FieldPath, 'path'>): string => path.map(({ name }) => name).join('.');

/** The fields of a resource that a client can set. An update excludes immutable fields. */
export const resourceFieldPaths = (resource: DescMessage, isUpdate: boolean): readonly FieldPath[] =>
  fieldPathsIn(resource, (field) => !isOutputOnly(field) && !(isUpdate && isImmutable(field)));

/** The fields of a request that are not in its path or body. */
export function queryFieldPaths({ desc: { input } }: Method, { template, body }: Route): readonly FieldPath[] {
  const excluded = new Set([body, ...routeVariables(template)]);
  return fieldPathsIn(
    input,
    (field) => !excluded.has(field.name) && field.message?.typeName !== FieldMaskSchema.typeName,
  );
}

/** Returns the variables of a route, such as `group.uid` of `/iam/v2/groups/{group.uid=**}`. */
export const routeVariables = (template: string): string[] =>
  [...template.matchAll(/\{([^}=]+)/g)].map(([, field = '']) => field);

function fieldPathsIn(
  message: DescMessage,
  isIncluded: (field: DescField) => boolean,
  ancestors: readonly DescField[] = [],
  prefix = '',
): readonly FieldPath[] {
  return message.fields.filter(isIncluded).flatMap((field): readonly FieldPath[] => {
    const path = [...ancestors, field];
    const name = field.name.replaceAll('_', '-');
    if (field.fieldKind !== 'message' || isJsonScalar(field.message)) return [{ flag: prefix + name, field, path }];
    // Stops at recursive types.
    if (ancestors.some((ancestor) => ancestor.message === field.message)) return [];
    // The uidp filter is used most, so its flags have no prefix: --descendants-of.
    const nestedPrefix = field.message.typeName === UIDPFilterSchema.typeName ? prefix : `${prefix}${name}.`;
    return fieldPathsIn(field.message, isIncluded, path, nestedPrefix);
  });
}

/** Whether a message is a single value in JSON, such as a timestamp or a duration. */
const isJsonScalar = ({ typeName }: DescMessage): boolean => typeName.startsWith('google.protobuf.');
