import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, type DescMessage, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { Validator } from '@seriousme/openapi-schema-validator';
import { file_google_rpc_error_details } from '../../contract/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../contract/gen/google/rpc/status_pb.js';
import type { Method } from '../../contract/method.ts';
import { files, methodTable } from '../../contract/method-table.ts';
import { withV2beta1 } from '../../contract/v2beta1.ts';
import { requestReader } from '../rest/read-request.ts';
import { openapi } from './document.ts';
import type { Operation, Parameter, Schema } from './types.ts';

const methods = withV2beta1(methodTable(files));
const options = { serverUrl: 'https://wharf.example.com', version: '1.2.3' };
const document = openapi(methods, options);
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ path, verb, operation })),
);

function find(id: string): Operation & { readonly path: string; readonly verb: string } {
  const found = operations.find(({ operation }) => operation.operationId === id);
  assert.ok(found, `no operation ${id}`);
  return { ...found.operation, path: found.path, verb: found.verb };
}

function operationOf(method: string): Operation {
  const found = operations.find(({ operation }) => operation['x-wharf-grpc-method'] === method);
  return found?.operation ?? assert.fail(`no operation of ${method}`);
}

const schema = (name: string): Schema => {
  const found = document.components.schemas[name];
  assert.ok(found, `no schema ${name}`);
  return found;
};

/** The value and every object inside it. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  yield value as Record<string, unknown>;
  for (const member of Object.values(value)) yield* objectsIn(member);
}

test('every route has one operation with a summary, a description and a unique id', () => {
  const routed = methods.flatMap((method) => method.routes.map(() => method.id));
  assert.deepEqual(operations.map(({ operation }) => operation['x-wharf-grpc-method']).sort(), routed.sort());
  assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, routed.length);
  for (const { operation } of operations) {
    assert.notEqual(operation.summary, '');
    assert.match(operation.description, /Needs /);
    assert.ok(operation.responses[200] && operation.responses.default, operation.operationId);
  }
});

test('an independent validator accepts the document as OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  assert.ok(valid, JSON.stringify(errors)?.slice(0, 2000));
});

test('the document is plain JSON, and the target of every reference exists', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(document)), document);
  let references = 0;
  for (const { $ref } of objectsIn(document)) {
    if (typeof $ref !== 'string') continue;
    references++;
    const target = $ref
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
    assert.ok(target, $ref);
  }
  assert.ok(references > 200);
});

test('every schema is used, has a type and a valid name', () => {
  const used = new Set([...objectsIn(document)].map(({ $ref }) => $ref));
  for (const [name, { type }] of Object.entries(document.components.schemas)) {
    assert.match(name, /^[\w.-]+$/);
    assert.ok(type, name);
    assert.ok(used.has(`#/components/schemas/${name}`), name);
  }
});

test('path variables and path parameters are the same, and no two paths differ only in them', () => {
  for (const { path, operation } of operations) {
    const variables = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
    const parameters = operation.parameters.filter((parameter) => parameter.in === 'path');
    assert.deepEqual(parameters.map((parameter) => parameter.name).sort(), variables.sort(), operation.operationId);
    assert.ok(parameters.every((parameter) => parameter.required));
    const names = operation.parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
    assert.equal(new Set(names).size, names.length, operation.operationId);
  }
  const shapes = Object.keys(document.paths).map((path) => path.replaceAll(/\{[^}]+\}/g, '{}'));
  assert.equal(new Set(shapes).size, shapes.length);
});

test('routes of one shape share a path and say which field each variable sets', () => {
  for (const id of ['GetGroup', 'DeleteGroup', 'CreateGroup', 'UpdateGroup']) {
    assert.equal(find(`GroupsService_${id}`).path, '/iam/v2/groups/{uid}');
  }
  const create = find('GroupsService_CreateGroup');
  assert.equal(create['x-wharf-path-template'], '/iam/v2/groups/{parent=**}');
  const [parent] = create.parameters;
  assert.equal(parent?.['x-wharf-field'], 'parent');
  assert.equal(parent?.['x-wharf-optional'], true);
  assert.match(parent?.description ?? '', /Sets `parent`.*%2F.*May be omitted/);
  assert.equal(find('GroupsService_GetGroup').parameters[0]?.['x-wharf-optional'], undefined);
});

test('two methods with the same verb and shape are both in the document', () => {
  const [get] = methods.filter((method) => method.id.endsWith('/GetGroup'));
  assert.ok(get);
  const route = { verb: 'GET', body: undefined } as const;
  const twins: Method[] = [
    { ...get, routes: [{ ...route, template: '/a/{uid=*}' }] },
    { ...get, routes: [{ ...route, template: '/a/{uid=**}' }] },
  ];
  const { paths } = openapi(twins, options);
  assert.deepEqual(Object.keys(paths), ['/a/{uid}', '/a/{uid_2}']);
  assert.deepEqual(
    Object.values(paths).map((item) => item.get?.operationId),
    ['GroupsService_GetGroup', 'GroupsService_GetGroup_2'],
  );
  const same = { ...get, routes: [{ ...route, template: '/a' }] };
  assert.throws(() => openapi([same, same], options), /has the route GET \/a of another method/);
});

test('fields that are not in the path or body are query parameters in snake_case', () => {
  const list = find('GroupsService_ListGroups');
  assert.deepEqual(
    list.parameters.map(({ name }) => name),
    ['ancestors_of', 'descendants_of', 'children_of', 'in_root', 'ids']
      .map((name) => `uidp.${name}`)
      .concat('name', 'page_size', 'page_token', 'order_by', 'skip'),
  );
  const byName = new Map(list.parameters.map((parameter) => [parameter.name, parameter]));
  assert.deepEqual(byName.get('uidp.ids')?.schema, { type: 'array', items: { type: 'string' } });
  assert.equal(byName.get('uidp.ids')?.explode, true);
  assert.deepEqual(byName.get('page_size')?.schema, { type: 'integer', format: 'int32', minimum: 0, default: 50 });

  const update = find('GroupsService_UpdateGroup');
  assert.deepEqual(
    update.parameters.map(({ name }) => name),
    ['uid', 'update_mask'],
  );
  const artifacts = find('ArtifactsService_ListArtifacts').parameters[0];
  assert.equal(artifacts?.required, true);
  assert.deepEqual(artifacts?.schema.items, { $ref: '#/components/schemas/libraries.v2.Ecosystem' });
});

test('a body requires the required fields of a create, none of an update, and never those of the path', () => {
  const bodyOf = (id: string) => find(id).requestBody?.content['application/json'].schema;
  assert.deepEqual(bodyOf('GroupsService_CreateGroup'), { $ref: '#/components/schemas/iam.v2.Group' });
  assert.deepEqual(schema('iam.v2.Group').required, ['name']);
  const update = bodyOf('GroupsService_UpdateGroup');
  assert.equal(update?.required, undefined);
  assert.equal(update?.properties?.uid, undefined);
  assert.ok(update?.properties?.description);
  assert.deepEqual(Object.keys(bodyOf('TermsService_AcceptTerms')?.properties ?? {}), ['documentIds']);
  assert.equal(find('GroupsService_RequestGroupAccess').requestBody, undefined);
});

test('fields are marked as read-only or write-only', () => {
  const invite = schema('iam.v2.GroupInvite');
  assert.equal(invite.properties?.uid?.readOnly, true);
  assert.equal(invite.properties?.ttl?.writeOnly, true);
  assert.ok(!invite.required?.includes('ttl'), 'a response never contains it');
  const body = find('GroupInvitesService_CreateGroupInvite').requestBody?.content['application/json'].schema;
  assert.deepEqual(body, { allOf: [{ $ref: '#/components/schemas/iam.v2.GroupInvite' }], required: ['ttl'] });
});

test('types follow the JSON mapping of protobuf', () => {
  const properties = (name: string) => schema(name).properties ?? {};
  assert.equal(properties('iam.v2.ListGroupsResponse').totalCount?.format, 'int64');
  assert.equal(properties('iam.v2.ListGroupsResponse').totalCount?.type, 'string');
  assert.equal(properties('iam.v2.Group').createTime?.format, 'date-time');
  assert.equal(properties('iam.v2.GroupInvite').ttl?.type, 'string');
  assert.equal(properties('vulnerabilities.v2.AdvisoryEvent').findings?.contentEncoding, 'base64');
  assert.deepEqual(properties('iam.v2.Group').resourceLimits?.additionalProperties, {
    type: 'integer',
    format: 'int32',
  });
  assert.deepEqual(properties('iam.v2.AccountAssociation.GitHub').appInstallations?.propertyNames, {
    pattern: '^-?[0-9]+$',
  });
  assert.ok(properties('registry.v2.Repo').sync_config, 'has the JSON name of the contract');
  assert.ok(schema('iam.v2.OrgKind').enum?.includes('ORG_KIND_CUSTOMER'));
  assert.match(schema('iam.v2.Identity').description ?? '', /at most one of `claimMatch`, `staticKeys`/);
  const { enum: names = [], 'x-enum-descriptions': dotted = [] } = schema('capabilities.Capability');
  assert.equal(dotted[names.indexOf('CAP_IAM_GROUPS_LIST')], 'groups.list');
});

test('access and events are in the description and in extensions', () => {
  const create = find('GroupInvitesService_CreateGroupInvite');
  assert.deepEqual(create['x-wharf-capabilities'], ['group_invites.create', 'role_bindings.create']);
  assert.match(create.description, /Needs `group_invites.create` and `role_bindings.create` at `parent`\./);
  assert.match(create.description, /Emits the event `dev\.chainguard\.api\.iam\.group_invite\.created\.v1`/);
  assert.deepEqual(create['x-wharf-event'], {
    type: 'dev.chainguard.api.iam.group_invite.created.v1',
    extensions: ['group'],
    audience: 'customer',
  });
  assert.equal(create.security, undefined);
  assert.deepEqual(document.security, [{ bearer: [] }]);
  const withoutToken = operations.filter(({ operation }) => operation.security !== undefined);
  assert.deepEqual(
    withoutToken.map(({ operation }) => operation['x-wharf-grpc-method']).sort(),
    methods
      .filter(({ access }) => access === 'public' || access === 'optional')
      .flatMap((method) => method.routes.map(() => method.id))
      .sort(),
  );
});

test('an empty response has no content', () => {
  assert.equal(find('GroupsService_DeleteGroup').responses[200].content, undefined);
  assert.ok(find('GroupsService_GetGroup').responses[200].content);
});

test('every example is a message of the contract', () => {
  let examples = 0;
  const check = (message: DescMessage, example: unknown, of: string) => {
    examples++;
    assert.doesNotThrow(() => fromJson(message, example as JsonValue), of);
  };
  for (const { id, desc, routes } of methods) {
    if (routes.length === 0) continue;
    const operation = operationOf(id);
    const response = operation.responses[200].content?.['application/json'];
    if (response) check(desc.output, response.example, id);
    const body = operation.requestBody?.content['application/json'];
    const field = desc.input.fields.find(({ name }) => name === routes[0]?.body);
    if (!body) continue;
    // An enum is checked as the field that the body is.
    const inMessage = (example: unknown) => (field?.enum ? { [field.name]: example } : example);
    for (const example of [body.example].flat()) check(field?.message ?? desc.input, inMessage(example), id);
  }
  assert.ok(examples > 90);

  const errors = document.components.responses.Error?.content?.['application/json'].examples;
  const registry = createRegistry(file_google_rpc_error_details);
  for (const { summary, value } of Object.values(errors ?? {})) {
    assert.doesNotThrow(() => fromJson(StatusSchema, value as JsonValue, { registry }), summary);
  }
});

test('REST accepts every request as the document describes it', () => {
  const sample = ({ schema, example }: Parameter): string => {
    const { type, format, contentMediaType, enum: names } = resolve(schema.items ?? schema);
    if (example !== undefined) return [example].flat().join(',');
    if (contentMediaType !== undefined) return '{}';
    if (names !== undefined) return names[1] ?? '';
    if (format === 'date-time') return '2026-03-14T09:26:53.589Z';
    return type === 'boolean' ? 'true' : '1';
  };
  const resolve = (found: Schema): Schema =>
    found.$ref === undefined ? found : schema(found.$ref.slice('#/components/schemas/'.length));

  for (const method of methods) {
    if (method.routes.length === 0) continue;
    const { parameters, requestBody } = operationOf(method.id);
    const [route] = method.routes;
    assert.ok(route);
    const query = new URLSearchParams();
    for (const parameter of parameters) {
      if (parameter.in !== 'query') continue;
      query.append(parameter.name, parameter.name === 'update_mask' ? '*' : sample(parameter));
    }
    const variables = parameters
      .filter((parameter) => parameter.in === 'path')
      .map((parameter) => ({ field: parameter['x-wharf-field'] ?? parameter.name, text: sample(parameter) }));
    const text = JSON.stringify(requestBody?.content['application/json'].example);
    const body = text === undefined ? undefined : ({ type: 'json', text } as const);
    assert.doesNotThrow(() => requestReader(method, route)({ variables, query: query.toString(), body }), method.id);
  }
});

test('the document has the name, the version, the server and the services', () => {
  assert.equal(document.openapi, '3.1.1');
  assert.equal(document.info.title, 'Wharfinger');
  assert.equal(document.info.version, '1.2.3');
  assert.equal(document.info.license.identifier, 'Apache-2.0');
  assert.deepEqual(document.servers, [{ url: 'https://wharf.example.com' }]);
  const tags = document.tags.map(({ name }) => name);
  assert.deepEqual(
    document['x-tagGroups'].flatMap((group) => group.tags),
    tags,
  );
  assert.deepEqual(new Set(operations.flatMap(({ operation }) => operation.tags)), new Set(tags));
  for (const tag of document.tags) assert.notEqual(tag.description, '', tag.name);
  assert.equal(
    document.tags.find(({ name }) => name === 'iam.v2.RoleBindingsService')?.['x-displayName'],
    'Role bindings',
  );
});
