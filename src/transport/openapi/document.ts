import { runAtOnce } from '../../base/run-in-slices.ts';
import { commentOn, humanName } from '../../contract/comments.ts';
import type { Method } from '../../contract/method.ts';
import { versionOf } from '../../contract/version.ts';
import { errorResponse, errorSchemas } from './errors.ts';
import { operation } from './operation.ts';
import { openApiRoutes } from './paths.ts';
import { createSchemas } from './schemas.ts';
import type { OpenApiDocument, PathItem, Tag } from './types.ts';

export interface OpenApiOptions {
  readonly serverUrl: string;
  readonly version: string;
}

/** Describes the contract as an OpenAPI 3.1 document. */
export const openapi = (methods: readonly Method[], options: OpenApiOptions): OpenApiDocument =>
  runAtOnce(openapiSteps(methods, options));

/** The same in steps, because the whole takes a tenth of a second. */
export function* openapiSteps(
  methods: readonly Method[],
  { serverUrl, version }: OpenApiOptions,
): Generator<undefined, OpenApiDocument> {
  const schemas = createSchemas();
  const operationIds = new Set<string>();
  const paths: Record<string, PathItem> = {};
  for (const openApiRoute of openApiRoutes(methods)) {
    const id = uniqueId(operationIdOf(openApiRoute.method), operationIds);
    const verb = openApiRoute.route.verb.toLowerCase();
    paths[openApiRoute.path] = {
      ...paths[openApiRoute.path],
      [verb]: operation(openApiRoute, id, tagName(openApiRoute.method), schemas),
    };
    yield;
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Wharfinger',
      summary: 'Resource Management API v2',
      description: introduction,
      version,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: serverUrl }],
    security: [{ bearer: [] }],
    ...tagsOf(methods),
    paths,
    components: {
      schemas: { ...sorted(schemas.components), ...errorSchemas },
      responses: { Error: errorResponse },
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An access token of this server, or an OIDC token of another issuer that matches an identity.',
        },
      },
    },
  };
}

const introduction = `Identity and access management, a container registry, vulnerability advisories, libraries, vulnerability metadata and event subscriptions. Every method is also available over gRPC on the same port.

Responses have fields in camelCase. Requests may use camelCase or snake_case, also for query parameters. An unknown field or parameter is an error that names it, but v1 ignores it.

Lists are paged. Send \`nextPageToken\` as \`page_token\` until it is absent; each result is returned once. \`order_by\` sorts, \`skip\` skips results, and \`totalCount\` is the number of results on all pages.

Updates are partial. \`update_mask\` names the fields to change. Without it, the fields in the body are changed. \`*\` replaces the whole resource.

A uid is a path: \`<root>/<child>/<grandchild>\`. A capability at a group is also valid for all its descendants.

All errors have the same form: a code, a message for people, and typed details for programs. Every error has a reason and the id of the request.`;

/** The name of the service that a method is served under. For v2beta1 it is not the name in the descriptor. */
const serviceOf = ({ id }: Method): string => id.slice(0, id.indexOf('/'));

/** The version that is shown for v1 and v2beta1. Empty for v2 and for the services of Wharfinger. */
function shownVersionOf(method: Method): string {
  const version = versionOf(method) ?? '';
  return version === 'v2' ? '' : version;
}

/** Only v2beta1 needs a suffix, because v1 has other service names. */
function operationIdOf(method: Method): string {
  const { parent, name } = method.desc;
  const isAlias = parent.typeName !== serviceOf(method);
  return `${parent.name}_${name}${isAlias ? `_${shownVersionOf(method)}` : ''}`;
}

/** Adds a number for the second route of a method, and for a service with the same name in another package. */
function uniqueId(id: string, taken: Set<string>): string {
  let unique = id;
  for (let suffix = 2; taken.has(unique); suffix++) unique = `${id}_${suffix}`;
  taken.add(unique);
  return unique;
}

const tagName = (method: Method): string => serviceOf(method).replace(/^chainguard\.platform\./, '');

function tagsOf(methods: readonly Method[]): Pick<OpenApiDocument, 'tags' | 'x-tagGroups'> {
  const routed = methods.filter(({ routes }) => routes.length > 0);
  // The first method of each service.
  const services = [...new Map(routed.toReversed().map((method) => [tagName(method), method])).values()].toReversed();
  const groups = Map.groupBy(services, (method) => groupName(method));
  return {
    tags: [...groups.values()].flat().map(
      (method): Tag => ({
        name: tagName(method),
        'x-displayName': withVersion(humanName(method.desc.parent.name.replace(/Service$/, '')), method),
        description: commentOn(method.desc.parent),
      }),
    ),
    'x-tagGroups': [...groups].map(([name, members]) => ({ name, tags: members.map(tagName) })),
  };
}

const groupName = (method: Method): string =>
  withVersion(method.domain === 'iam' ? 'IAM' : method.domain.replace(/^./, (letter) => letter.toUpperCase()), method);

const withVersion = (name: string, method: Method): string => `${name} ${shownVersionOf(method)}`.trim();

const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
