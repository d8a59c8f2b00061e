import type { DescFile, DescMessage, DescMethod, DescMethodUnary, DescService } from '@bufbuild/protobuf';
import { v1Files, v2Files, wharfingerFiles } from './gen/files.js';
import type { HttpRule } from './gen/google/api/http_pb.js';
import { type Access, Audience, type Event } from './gen/wharfinger/options/v1/options_pb.js';
import { DEFAULT_MAX_VALUES, type EventSpec, type Method, methodId, type Route, type Verb } from './method.ts';
import { fieldOptions, methodOptions } from './options.ts';
import { versionOf } from './version.ts';

/** Every file whose services are served over REST and gRPC. */
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
  const { http, access, event, requestLimits } = methodOptions(desc);
  if (http === undefined && !methodsWithoutRoute.has(id)) throw incomplete('has no google.api.http route');
  if (access === undefined) throw incomplete('has no wharfinger.options.v1.access option');

  const scope = scopeOf(desc.input);
  if (access.public && (access.unscoped || access.capabilities.length > 0)) {
    throw incomplete('is public and yet requires capabilities');
  }
  if (access.requiredToken !== '' && !access.public) throw incomplete('has a required_token, but is not public');
  if (access.recognizesCaller && !access.public) throw incomplete('recognizes callers, but is not public');
  if (access.serverWide && (access.public || access.unscoped || access.capabilities.length === 0)) {
    throw incomplete('is server_wide, so it must name capabilities and be neither public nor unscoped');
  }
  if (accessKindOf(access) === 'scoped' && scope.length === 0) {
    throw incomplete(
      `is checked at a scope, but ${desc.input.typeName} marks no field with wharfinger.options.v1.scope`,
    );
  }
  if (access.handlerCheck !== '' && !access.unscoped) throw incomplete('has a handler_check, but is not unscoped');
  if (access.unscoped && access.handlerCheck === '' && !desc.name.startsWith('List')) {
    throw incomplete('is unscoped and not a List, so handler_check must say what its operation checks');
  }
  return {
    id,
    domain: domainOf(desc.parent.file),
    desc,
    isV1: versionOf({ id }) === 'v1',
    routes: bindingsOf(http).map((binding) => {
      const route = readRoute(binding);
      if (route === undefined) throw incomplete('has a google.api.http binding with a verb that is not supported');
      return route;
    }),
    access: accessKindOf(access),
    requiredToken: access.requiredToken || undefined,
    handlerCheck: access.handlerCheck || undefined,
    unrestrictedToken: access.unrestrictedToken,
    beforeTerms: access.beforeTerms,
    capabilities: access.capabilities,
    scope,
    event: event && readEvent(event, incomplete),
    maxValues: requestLimits?.maxValues || DEFAULT_MAX_VALUES,
  };
}

/** Methods of v1 that are served over gRPC only. */
const methodsWithoutRoute: ReadonlySet<string> = new Set(['chainguard.platform.iam.GroupInvites/CreateWithGroup']);

const bindingsOf = (rule: HttpRule | undefined): readonly HttpRule[] =>
  rule === undefined ? [] : [rule, ...rule.additionalBindings];

function accessKindOf({ public: isPublic, recognizesCaller, unscoped, serverWide }: Access): Method['access'] {
  if (isPublic) return recognizesCaller ? 'optional' : 'public';
  if (serverWide) return 'server';
  return unscoped ? 'unscoped' : 'scoped';
}

const isUnary = (desc: DescMethod): desc is DescMethodUnary => desc.methodKind === 'unary';

function readRoute({ pattern, body }: HttpRule): Route | undefined {
  if (pattern.case === undefined || pattern.case === 'custom') return undefined;
  return { verb: pattern.case.toUpperCase() as Verb, template: pattern.value, body: body === '' ? undefined : body };
}

function readEvent(
  { type, extensions, audience, readableWith }: Event,
  incomplete: (problem: string) => Error,
): EventSpec {
  if (type === '') throw incomplete('has an event without a type');
  switch (audience) {
    case Audience.CUSTOMER:
      return { type, extensions, readableWith, audience: 'customer' };
    case Audience.INTERNAL:
      return { type, extensions, readableWith, audience: 'internal' };
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
