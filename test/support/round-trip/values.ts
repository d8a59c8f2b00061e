import {
  type DescField,
  type DescMessage,
  type DescOneof,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from '@bufbuild/protobuf';
import { isOutputOnly } from '../../../src/contract/field-behavior.ts';
import { builtinRoleUid } from '../callers.ts';

/** What values refer to. */
export interface ValueContext {
  /** The organization of the test. */
  readonly org: string;
  /** Two identities of the organization. */
  readonly identities: readonly string[];
  /** The digests of two images of the repo that tags are in. */
  readonly digests: readonly string[];
  /** Two repos that others can synchronize from. */
  readonly sources: readonly string[];
  /** Two library policies of the organization. */
  readonly policies: readonly string[];
}

/** Another round has other values. Another variant has other cases of oneofs and other values of enums. */
export interface Choice {
  readonly round: number;
  readonly variant: number;
}

/** Returns undefined if a client sends nothing. */
type Sample = (choice: number, context: ValueContext) => JsonValue | undefined;

const nth = <T>(values: readonly T[], at: number): T => values[at % values.length] as T;

const oneOf =
  (...values: JsonValue[]): Sample =>
  (choice) =>
    nth(values, choice);

const notSent: Sample = () => undefined;
const role = oneOf(...['viewer', 'editor'].map(builtinRoleUid));
const year = new Date().getUTCFullYear();

/** The values of fields that do not take any text, by message and field, or by field. */
const samples: Readonly<Record<string, Sample>> = {
  name: (choice) => `name-${choice}`,
  account: oneOf('123456789012', '210987654321'),
  awsAccount: oneOf('123456789012', '210987654321'),
  issuer: oneOf('https://one.example.com', 'https://two.example.com'),
  issuerPattern: oneOf('https://(one|two)[.]example[.]com', 'https://three[.]example[.]com'),
  expiration: oneOf(`${year + 1}-01-02T00:00:00Z`, `${year + 1}-01-03T00:00:00Z`),
  expirationTime: oneOf(`${year + 1}-01-02T00:00:00Z`, `${year + 1}-01-03T00:00:00Z`),
  sink: oneOf('https://one.example.com/events', 'https://two.example.com/events'),
  ttl: oneOf('3600s', '7200s'),
  email: oneOf('one@example.com', 'two@example.com'),
  digest: (choice, { digests }) => nth(digests, choice),
  bundles: oneOf(['base'], ['fips', 'ai']),
  aliases: oneOf(['one:latest'], ['two:latest', 'three:v1']),
  role,
  roleUid: role,
  roleUidp: role,
  defaultRole: role,
  identity: (choice, { identities }) => nth(identities, choice),
  identityUid: (choice, { identities }) => nth(identities, choice),
  scope: (_, { org }) => org,
  'Role.capabilities': oneOf(['groups.list'], ['groups.list', 'repo.list']),
  'v2.Role.capabilities': oneOf(['CAP_IAM_GROUPS_LIST'], ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST']),
  'SyncConfig.source': (choice, { sources }) => nth(sources, choice),
  // The server counts the current images.
  'Entitlement.quota': oneOf({ APPLICATION: { max: 1 } }, { FIPS: { max: 2 } }),
  'HelmChart.repo': oneOf('https://one.example.com/charts', 'oci://two.example.com/charts'),
  'Advisory.aliases': oneOf(['CVE-2026-0001'], ['CVE-2026-0002', 'GHSA-2222-3333-4444']),
  'Tag.name': oneOf('v1'),
  'OIDC.correlationRule': oneOf('CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID'),
  'OIDC.groupsClaim': oneOf('groups', 'roles'),
  purl: oneOf('pkg:npm/left-pad@1.3.0', 'pkg:pypi/requests'),
  'LibraryPolicyBinding.policy': (choice, { policies }) => nth(policies, choice),
  tenantId: oneOf('6a8cbb4c-1f0e-4b0e-9d6c-3f2a9a1f5f01', '6a8cbb4c-1f0e-4b0e-9d6c-3f2a9a1f5f02'),
  clientIds: oneOf({ one: '6a8cbb4c-1f0e-4b0e-9d6c-3f2a9a1f5f03' }, { two: '6a8cbb4c-1f0e-4b0e-9d6c-3f2a9a1f5f04' }),
  serviceBindings: (choice, { identities }) => ({ INGESTER: nth(identities, choice) }),
  shell: oneOf('/bin/sh', '/bin/bash'),
  homeDir: oneOf('/home/one', '/home/two'),
  'AdditionalEntry.content': (choice) => `-----BEGIN CERTIFICATE-----\n${choice}\n-----END CERTIFICATE-----`,
  'CustomOverlay.environment': oneOf({ ONE: '1', TWO: '2' }, { THREE: '3' }),
  runtimeRepositories: oneOf(['https://one.example.com/apk'], ['https://two.example.com/apk']),
  'Advisory.advisoryId': (_, { org }) =>
    `CGA-${org
      .replace(/[^2-9cfghjmpqrvwx]/g, '')
      .padEnd(12, '2')
      .replace(/^(.{4})(.{4})(.{4}).*/, '$1-$2-$3')}`,
  // The parent of the resource says it.
  identityProviderUid: notSent,
  identityProviderUidp: notSent,
  'RoleBinding.group': notSent,
  // The server or its operator sets these.
  'Group.resourceLimits': notSent,
  'Group.verified': notSent,
  'Group.kind': notSent,
  'Group.status': notSent,
};

/** Repos that are synchronized from another take these from it. The others have no source. */
const fromSource = new Set(['catalog_tier', 'bundles', 'aliases', 'active_tags']);

/** The cases of a oneof that can be stored: v2 has no place for a former location, and the server refuses it. */
const casesOf = ({ fields }: DescOneof): DescField[] =>
  fields.filter(({ name }) => name !== 'component_location_changed');

function isInChoice(field: DescField, { round, variant }: Choice): boolean {
  if (field.oneof) return nth(casesOf(field.oneof), variant) === field;
  // Events are changed by methods of their own.
  if (field.parent.name === 'Advisory' && field.name === 'events') return round === 0;
  if (field.parent.name !== 'Repo') return true;
  return variant % 2 === 0 ? field.name !== 'sync_config' : !fromSource.has(field.name);
}

/** Fields that the server sets, also where v1 does not say so. */
const SERVER_SETS =
  /^(id|uid|create_time|update_time|(created|updated|deleted)_at|last_seen|last_updated|key_id|code|scim)$/;

/** The fields that a client sends in this variant: of each oneof one. */
export const sentFields = ({ fields }: DescMessage, choice: Choice): DescField[] =>
  fields.filter((field) => !isOutputOnly(field) && !SERVER_SETS.test(field.name) && isInChoice(field, choice));

/** How many variants a message needs for every case of its oneofs, but for those of messages that are lists. */
export const variantsOf = ({ name, fields }: DescMessage): number =>
  Math.max(
    name === 'Repo' ? 2 : 1,
    ...fields.map(({ oneof }) => (oneof ? casesOf(oneof).length : 1)),
    ...fields.map((field) => (field.fieldKind === 'message' && isOwn(field.message) ? variantsOf(field.message) : 1)),
  );

const isOwn = ({ typeName }: DescMessage): boolean => !typeName.startsWith('google.protobuf.');

/** A resource as a client sends it. */
export function messageValue(desc: DescMessage, choice: Choice, context: ValueContext): JsonObject {
  const entries = sentFields(desc, choice).map(
    (field) => [field.jsonName, fieldValue(field, choice, context)] as const,
  );
  return Object.fromEntries(entries.filter((entry): entry is [string, JsonValue] => entry[1] !== undefined));
}

function fieldValue(field: DescField, choice: Choice, context: ValueContext): JsonValue | undefined {
  const at = choice.round + choice.variant;
  const version = field.parent.file.proto.package.endsWith('.v2') ? 'v2.' : '';
  const key = `${field.parent.name}.${field.localName}`;
  const sample = samples[`${version}${key}`] ?? samples[key] ?? samples[field.localName];
  if (sample) return sample(at, context);
  switch (field.fieldKind) {
    case 'scalar':
      return scalarValue(field.scalar, field.name, at);
    case 'enum':
      return enumValue(field, at);
    case 'message':
      return messageOf(field.message, choice, context);
    case 'list': {
      const item = (n: number): JsonValue =>
        field.listKind === 'message'
          ? messageOf(field.message, { ...choice, round: n }, context)
          : field.listKind === 'enum'
            ? enumValue(field, n)
            : scalarValue(field.scalar, field.name, n);
      return [item(at), item(at + 1)];
    }
    case 'map': {
      const key = (n: number): string => (field.mapKey === ScalarType.STRING ? `key${n}` : String(n + 1));
      const value = (n: number): JsonValue =>
        field.mapKind === 'message'
          ? messageOf(field.message, { ...choice, round: n }, context)
          : field.mapKind === 'enum'
            ? enumValue(field, n)
            : scalarValue(field.scalar, field.name, n);
      return { [key(at)]: value(at), [key(at + 1)]: value(at + 1) };
    }
  }
}

function messageOf(desc: DescMessage, choice: Choice, context: ValueContext): JsonValue {
  if (desc.typeName === 'google.protobuf.Timestamp') return `2026-01-0${1 + choice.round}T00:00:00Z`;
  if (desc.typeName === 'google.protobuf.Duration') return `${60 * (choice.round + 1)}s`;
  return messageValue(desc, choice, context);
}

function enumValue({ enum: desc }: Pick<DescField, 'enum'>, at: number): string {
  if (!desc) throw new Error('no enum');
  return nth(
    desc.values.filter(({ number }) => number !== 0),
    at,
  ).name;
}

function scalarValue(scalar: ScalarType, name: string, at: number): JsonValue {
  switch (scalar) {
    case ScalarType.STRING:
      return `${name.replaceAll('_', '-')}-${at}`;
    case ScalarType.BYTES:
      return Buffer.from(`${name} ${at}`).toString('base64');
    case ScalarType.BOOL:
      return at % 2 === 0;
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return String(1000 + at);
    default:
      return 1000 + at;
  }
}
