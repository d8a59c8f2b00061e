import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { isInputOnly, isOutputOnly, isRequired } from '../../contract/field-behavior.ts';
import type { Json } from './types.ts';

const ORGANIZATION = '5f0c1d6b7a8e4923b1c0d9e8f7a6b5c4d3e2f1a0';
const CHILD = `${ORGANIZATION}/9b3e6a1c4d7f2085`;

/** Realistic values by field name. The first matching pattern is used. */
const byName: readonly (readonly [RegExp, string])[] = [
  [/^(parent(_id)?|group|org_uid|scope|.*_of)$/, ORGANIZATION],
  [/^role(_uid)?$/, 'a3d1f7b2c5e8904613f2a7b6c5d4e3f201928374'],
  [/^id$|(^|_)uid[sp]?$/, CHILD],
  [/^capabilities$/, 'CAP_IAM_GROUPS_LIST'],
  [/^doc(ument)?_ids?$/, 'terms.v1'],
  [/^artifact_id$/, 'requests'],
  [/advisory_ids?$/, 'CGA-2x4m-7pq9-c3vh'],
  [/^(aliases|cves?|ids)$/, 'CVE-2026-12345'],
  [/digest$/, `sha256:${'4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'}`],
  [/architectures?$/, 'amd64'],
  [/issuer$/, 'https://issuer.example.com'],
  [/subject$/, 'repo:acme/app:ref:refs/heads/main'],
  [/audiences?$/, 'https://api.example.com'],
  [/(^|_)email(_|$)/, 'ada@example.com'],
  [/(^|_)(url|uri|sink|endpoint)s?$/, 'https://hooks.example.com/wharf'],
  [/version$/, '1.4.2'],
  [/page_token$/, 'b3BhcXVlLCBieSBkZXNpZ24'],
  [/order_by/, 'name'],
  [/description$/, 'Owned by the platform team'],
  [/name$/, 'platform'],
];

/** How deep an example nests messages. */
const MAX_DEPTH = 3;

export const exampleText = (field: DescField): string =>
  byName.find(([pattern]) => pattern.test(field.name))?.[1] ?? field.jsonName;

/** A response with a value for every field. */
export const exampleResponse = (message: DescMessage): Json =>
  fill(message, (candidates) => candidates.filter((field) => !isInputOnly(field)), MAX_DEPTH);

/** A request body with the required fields and those that most clients send. */
export const exampleBody = (message: DescMessage, without: ReadonlySet<string>): Json =>
  fill(message, (candidates) => usualFields(candidates.filter((field) => !without.has(field.name))), MAX_DEPTH);

/** The value of a query parameter. A message is JSON text. */
export function exampleParameter(field: DescField): Json {
  const value = exampleValue(field, usualFields, MAX_DEPTH) ?? '';
  const text = typeof value === 'object' ? JSON.stringify(value) : value;
  return field.fieldKind === 'list' ? [text] : text;
}

function usualFields(fields: readonly DescField[]): readonly DescField[] {
  const settable = fields.filter((field) => !isOutputOnly(field));
  const usual = settable.filter(
    (field) => isRequired(field) || field.oneof !== undefined || field.name === 'description',
  );
  return usual.some((field) => field.name !== 'description') ? usual : settable;
}

type Choose = (fields: readonly DescField[]) => readonly DescField[];

function fill(message: DescMessage, choose: Choose, depth: number): Json {
  const fields = choose(message.fields.filter((field) => field.oneof === undefined || field.oneof.fields[0] === field));
  const entries = fields.flatMap((field) => {
    const value = exampleValue(field, choose, depth);
    if (value === undefined) return [];
    if (field.fieldKind === 'list') return [[field.jsonName, [value]]];
    if (field.fieldKind === 'map')
      return [[field.jsonName, { [field.mapKey === ScalarType.STRING ? 'key' : '1']: value }]];
    return [[field.jsonName, value]];
  });
  return Object.fromEntries(entries);
}

function exampleValue(field: DescField, choose: Choose, depth: number): Json | undefined {
  const { message, enum: enumeration, scalar } = field;
  if (message !== undefined) {
    switch (message.typeName) {
      case 'google.protobuf.Timestamp':
        return '2026-03-14T09:26:53.589Z';
      case 'google.protobuf.Duration':
        return '86400s';
      case 'google.protobuf.FieldMask':
        return 'description';
      default:
        return depth > 0 ? fill(message, choose, depth - 1) : undefined;
    }
  }
  if (enumeration !== undefined) {
    const names = enumeration.values.map((value) => value.name);
    return names.find((name) => name === exampleText(field)) ?? names[1] ?? names[0];
  }
  switch (scalar) {
    case ScalarType.BOOL:
      return false;
    case ScalarType.STRING:
      return exampleText(field);
    case ScalarType.BYTES:
      return 'd2hhcmY=';
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return '1';
    default:
      return field.name === 'skipped' ? 0 : 1;
  }
}
