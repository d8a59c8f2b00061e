import type { DescService } from '@bufbuild/protobuf';
import type { Method } from '../../contract/method.ts';
import { commentOn, humanName } from './comments.ts';
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
    const { desc } = placed.method;
    const id = firstFree(`${desc.parent.name}_${desc.name}`, operationIds);
    const verb = placed.route.verb.toLowerCase();
    paths[placed.path] = {
      ...paths[placed.path],
      [verb]: operation(placed, id, tagName(desc.parent), schemas),
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

/** A second route of a method, or a service of the same name in another package, gets a number. */
function firstFree(id: string, taken: Set<string>): string {
  let free = id;
  for (let turn = 2; taken.has(free); turn++) free = `${id}_${turn}`;
  taken.add(free);
  return free;
}

const tagName = (service: DescService): string => service.typeName.replace(/^chainguard\.platform\./, '');

function tagsOf(methods: readonly Method[]): Pick<OpenApiDocument, 'tags' | 'x-tagGroups'> {
  const services = new Map(methods.map(({ desc, domain }) => [desc.parent, domain]));
  const domains = Map.groupBy(services.keys(), (service) => services.get(service) ?? '');
  return {
    tags: [...services.keys()].map(
      (service): Tag => ({
        name: tagName(service),
        'x-displayName': humanName(service.name.replace(/Service$/, '')),
        description: commentOn(service),
      }),
    ),
    'x-tagGroups': [...domains].map(([domain, members]) => ({
      name: domain === 'iam' ? 'IAM' : domain.charAt(0).toUpperCase() + domain.slice(1),
      tags: members.map(tagName),
    })),
  };
}

const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
