import type { DescFile, DescMessage, DescMethod, DescMethodUnary, DescService } from '@bufbuild/protobuf';
import { file_chainguard_platform_advisory_v2_advisory } from './gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { file_chainguard_platform_events_v2_subscriptions } from './gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { file_chainguard_platform_iam_v2_account_associations } from './gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { file_chainguard_platform_iam_v2_external_group_role_mappings } from './gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { file_chainguard_platform_iam_v2_group_invites } from './gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { file_chainguard_platform_iam_v2_groups } from './gen/chainguard/platform/iam/v2/groups_pb.js';
import { file_chainguard_platform_iam_v2_identities } from './gen/chainguard/platform/iam/v2/identities_pb.js';
import { file_chainguard_platform_iam_v2_identity_providers } from './gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { file_chainguard_platform_iam_v2_role_bindings } from './gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { file_chainguard_platform_iam_v2_roles } from './gen/chainguard/platform/iam/v2/roles_pb.js';
import { file_chainguard_platform_iam_v2_terms } from './gen/chainguard/platform/iam/v2/terms_pb.js';
import { file_chainguard_platform_libraries_v2_artifacts } from './gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { file_chainguard_platform_ping_v2_ping } from './gen/chainguard/platform/ping/v2/ping_pb.js';
import { file_chainguard_platform_registry_v2_images } from './gen/chainguard/platform/registry/v2/images_pb.js';
import { file_chainguard_platform_registry_v2_repos } from './gen/chainguard/platform/registry/v2/repos_pb.js';
import { file_chainguard_platform_registry_v2_tags } from './gen/chainguard/platform/registry/v2/tags_pb.js';
import { file_chainguard_platform_vulnerabilities_v2_advisories } from './gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { HttpRule } from './gen/google/api/http_pb.js';
import { file_wharfinger_access_v1_access } from './gen/wharfinger/access/v1/access_pb.js';
import { file_wharfinger_access_v1_access_requests } from './gen/wharfinger/access/v1/access_requests_pb.js';
import { file_wharfinger_events_v1_deliveries } from './gen/wharfinger/events/v1/deliveries_pb.js';
import { file_wharfinger_events_v1_sinks } from './gen/wharfinger/events/v1/sinks_pb.js';
import { file_wharfinger_imports_v1_advisories } from './gen/wharfinger/imports/v1/advisories_pb.js';
import { file_wharfinger_imports_v1_libraries } from './gen/wharfinger/imports/v1/libraries_pb.js';
import { file_wharfinger_imports_v1_reports } from './gen/wharfinger/imports/v1/reports_pb.js';
import { file_wharfinger_imports_v1_vulnerabilities } from './gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { type Access, Audience, type Event } from './gen/wharfinger/options/v1/options_pb.js';
import { file_wharfinger_reports_v1_reports } from './gen/wharfinger/reports/v1/reports_pb.js';
import { type EventSpec, type Method, methodId, type Route, type Verb } from './method.ts';
import { fieldOptions, methodOptions } from './options.ts';
import { v1Files } from './v1-files.ts';

/** The seven domains of v2. */
export const v2Files: readonly DescFile[] = [
  file_chainguard_platform_iam_v2_groups,
  file_chainguard_platform_iam_v2_identities,
  file_chainguard_platform_iam_v2_roles,
  file_chainguard_platform_iam_v2_role_bindings,
  file_chainguard_platform_iam_v2_identity_providers,
  file_chainguard_platform_iam_v2_external_group_role_mappings,
  file_chainguard_platform_iam_v2_group_invites,
  file_chainguard_platform_iam_v2_account_associations,
  file_chainguard_platform_iam_v2_terms,
  file_chainguard_platform_registry_v2_repos,
  file_chainguard_platform_registry_v2_tags,
  file_chainguard_platform_registry_v2_images,
  file_chainguard_platform_vulnerabilities_v2_advisories,
  file_chainguard_platform_libraries_v2_artifacts,
  file_chainguard_platform_advisory_v2_advisory,
  file_chainguard_platform_events_v2_subscriptions,
  file_chainguard_platform_ping_v2_ping,
];

/** Services that the Resource Management API does not have. */
const wharfingerFiles: readonly DescFile[] = [
  file_wharfinger_access_v1_access,
  file_wharfinger_access_v1_access_requests,
  file_wharfinger_events_v1_deliveries,
  file_wharfinger_events_v1_sinks,
  file_wharfinger_imports_v1_advisories,
  file_wharfinger_imports_v1_libraries,
  file_wharfinger_imports_v1_reports,
  file_wharfinger_imports_v1_vulnerabilities,
  file_wharfinger_reports_v1_reports,
];

/** Every file whose services are served. */
export const files: readonly DescFile[] = [...v2Files, ...v1Files, ...wharfingerFiles];

export const services: readonly DescService[] = files.flatMap((file) => file.services);

/**
 * Reads the method table from descriptors. Throws when the contract is incomplete, so that the server does not start.
 */
export const methodTable = (files: readonly DescFile[]): readonly Method[] =>
  files.flatMap((file) => file.services.flatMap((service) => service.methods.map(readMethod)));

function readMethod(desc: DescMethod): Method {
  const id = methodId(desc);
  const incomplete = (problem: string) => new Error(`contract: ${id} ${problem}`);

  if (!isUnary(desc)) throw incomplete('streams; only unary methods are served');
  const { http, access, event } = methodOptions(desc);
  if (http === undefined && !methodsWithoutRoute.has(id)) throw incomplete('has no google.api.http route');
  if (access === undefined) throw incomplete('has no wharfinger.options.v1.access option');

  const scope = scopeOf(desc.input);
  if (access.public && (access.unscoped || access.capabilities.length > 0)) {
    throw incomplete('is public and yet requires capabilities');
  }
  if (access.recognizesCaller && !access.public) throw incomplete('recognizes callers, but is not public');
  if (!access.public && !access.unscoped && scope.length === 0) {
    throw incomplete(
      `is checked at a scope, but ${desc.input.typeName} marks no field with wharfinger.options.v1.scope`,
    );
  }
  return {
    id,
    domain: domainOf(desc.parent.file),
    desc,
    routes: bindingsOf(http).map((binding) => {
      const route = readRoute(binding);
      if (route === undefined) throw incomplete('has a google.api.http binding with a verb that is not supported');
      return route;
    }),
    access: accessKindOf(access),
    capabilities: access.capabilities,
    scope,
    event: event && readEvent(event, incomplete),
  };
}

/** Methods of v1 that are served over gRPC only. */
const methodsWithoutRoute: ReadonlySet<string> = new Set(['chainguard.platform.iam.GroupInvites/CreateWithGroup']);

const bindingsOf = (rule: HttpRule | undefined): readonly HttpRule[] =>
  rule === undefined ? [] : [rule, ...rule.additionalBindings];

function accessKindOf({ public: isPublic, recognizesCaller, unscoped }: Access): Method['access'] {
  if (isPublic) return recognizesCaller ? 'optional' : 'public';
  return unscoped ? 'unscoped' : 'scoped';
}

const isUnary = (desc: DescMethod): desc is DescMethodUnary => desc.methodKind === 'unary';

function readRoute({ pattern, body }: HttpRule): Route | undefined {
  if (pattern.case === undefined || pattern.case === 'custom') return undefined;
  return { verb: pattern.case.toUpperCase() as Verb, template: pattern.value, body: body === '' ? undefined : body };
}

function readEvent({ type, extensions, audience }: Event, incomplete: (problem: string) => Error): EventSpec {
  if (type === '') throw incomplete('has an event without a type');
  switch (audience) {
    case Audience.CUSTOMER:
      return { type, extensions, audience: 'customer' };
    case Audience.INTERNAL:
      return { type, extensions, audience: 'internal' };
    default:
      throw incomplete(`has event ${type} without an audience`);
  }
}

/** The path of marked fields from a message to the uid that is its scope; empty when no field is marked. */
function scopeOf(message: DescMessage): string[] {
  const [field, another] = message.fields.filter((candidate) => fieldOptions(candidate).scope);
  if (field === undefined) return [];
  if (another !== undefined) {
    throw new Error(`contract: ${message.typeName} marks both ${field.name} and ${another.name} as scope`);
  }
  if (field.fieldKind === 'scalar') return [field.name];
  const rest = field.fieldKind === 'message' ? scopeOf(field.message) : [];
  if (rest.length === 0)
    throw new Error(`contract: ${message.typeName}.${field.name} is marked as scope but contains no uid`);
  return [field.name, ...rest];
}

/** `iam` for the packages `chainguard.platform.iam.v2` and `chainguard.platform.iam`: v1 packages have no version. */
function domainOf(file: DescFile): string {
  const domain = file.proto.package.split('.').findLast((part) => !/^v\d/.test(part));
  if (!domain) throw new Error(`contract: package of ${file.name}.proto has no domain`);
  return domain;
}
