import { commentOn, humanName } from '../../contract/comments.ts';
import type { Method } from '../../contract/method.ts';
import { errorResponse, errorSchemas } from './errors.ts';
import { operation } from './operation.ts';
import { placeRoutes } from './paths.ts';
import { createSchemas } from './schemas.ts';
import type { OpenApiDocument, PathItem, Tag } from './types.ts';

export interface OpenApiOptions {
  readonly serverUrl: string;
  readonly version: string;
}

/** The contract as an OpenAPI 3.1 document. */
export function openapi(methods: readonly Method[], { serverUrl, version }: OpenApiOptions): OpenApiDocument {
  const schemas = createSchemas();
  const operationIds = new Set<string>();
  const paths: Record<string, PathItem> = {};
  for (const placed of placeRoutes(methods)) {
    const id = firstFree(operationIdOf(placed.method), operationIds);
    const verb = placed.route.verb.toLowerCase();
    paths[placed.path] = {
      ...paths[placed.path],
      [verb]: operation(placed, id, tagName(placed.method), schemas),
    };
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
          description: 'A token of this server, or an OIDC token of another issuer that an identity matches.',
        },
      },
    },
  };
}

const introduction = `Identity and access management, a container registry, vulnerability advisories, libraries, advisory documents and event subscriptions. Every method here is also served over gRPC, on the same port.

Fields are written in camelCase and read in camelCase and snake_case; the same holds for query parameters. A field or parameter that does not exist is an error that names it.

Lists come in pages. Follow \`nextPageToken\` with \`page_token\` until it is absent, and every result has been seen once. \`order_by\` sorts, \`skip\` jumps, \`totalCount\` counts all pages.

Updates are partial. \`update_mask\` names the fields to change; without it, the fields in the body change; \`*\` replaces the whole resource.

A uid is a path: \`<root>/<child>/<grandchild>\`. What a caller may do somewhere, it may do everywhere below.

Errors have one shape: a code, a message for people, and typed details for programs. Every error names its reason and the id of the request.`;

/** The name of the service that a method is served under, which its descriptor may know by another. */
const serviceOf = ({ id }: Method): string => id.slice(0, id.indexOf('/'));

/** What earlier clients call the same thing goes by its version; v2 and what is our own need none. */
function versionOf(method: Method): string {
  const [, version = 'v1'] = /^chainguard\.platform\.\w+\.(v\w+)\./.exec(method.id) ?? [];
  return version === 'v2' || !method.id.startsWith('chainguard.') ? '' : version;
}

/** v1 has service names of its own, so only v2beta1 needs telling apart. */
function operationIdOf(method: Method): string {
  const { parent, name } = method.desc;
  const isAlias = parent.typeName !== serviceOf(method);
  return `${parent.name}_${name}${isAlias ? `_${versionOf(method)}` : ''}`;
}

/** A second route of a method, or a service of the same name in another package, gets a number. */
function firstFree(id: string, taken: Set<string>): string {
  let free = id;
  for (let turn = 2; taken.has(free); turn++) free = `${id}_${turn}`;
  taken.add(free);
  return free;
}

const tagName = (method: Method): string => serviceOf(method).replace(/^chainguard\.platform\./, '');

function tagsOf(methods: readonly Method[]): Pick<OpenApiDocument, 'tags' | 'x-tagGroups'> {
  const routed = methods.filter(({ routes }) => routes.length > 0);
  // One method speaks for its service.
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

const withVersion = (name: string, method: Method): string => `${name} ${versionOf(method)}`.trim();

const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
