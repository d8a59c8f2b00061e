import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  toJson,
} from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { isImmutable, isInputOnly } from '../../src/contract/field-behavior.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Advisories } from '../../src/contract/gen/platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js';
import { LibraryPoliciesService } from '../../src/contract/gen/wharfinger/libraries/v1/library_policies_pb.js';
import { v2beta1Id } from '../../src/contract/v2beta1.ts';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid } from '../support/callers.ts';
import { insertImage, withStore } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';
import { itemsField, type ResourceKind, resourceField, resourceKinds, uidField } from '../support/round-trip/kinds.ts';
import { type Choice, messageValue, type ValueContext, variantsOf } from '../support/round-trip/values.ts';

/**
 * A client like an infrastructure-as-code provider: it creates each kind of resource with a value in every field that it
 * may send, reads it, changes every field, and deletes it. What it reads must be what it sent. Kinds, fields and most
 * values come from the contract.
 */
onEveryDatabaseAndWire('what a client sends is what it reads', (fixture) => {
  let context: ValueContext;
  before(async () => {
    const { api } = fixture;
    const name = `round trip ${fixture.wire.toLowerCase()}`;
    const org = (await api.call(GroupsService.method.createGroup, { group: { name } })).uid;
    const newIdentity = async (name: string) =>
      (await api.call(IdentitiesService.method.createIdentity, { parent: org, identity: { name } })).uid;
    const newPolicy = async (name: string) =>
      (await api.call(LibraryPoliciesService.method.createLibraryPolicy, { parent: org, libraryPolicy: { name } })).uid;
    context = {
      ...{ org, digests: await insertImages(fixture, await newRepo(fixture, org)) },
      identities: [await newIdentity('one'), await newIdentity('two')],
      sources: [await newRepo(fixture, org), await newRepo(fixture, org)],
      policies: [await newPolicy('one'), await newPolicy('two')],
    };
  });

  for (const kind of resourceKinds()) {
    for (let variant = 0; variant < variantsOf(kind.resource); variant++) {
      test(`${kind.version} ${kind.name}, variant ${variant}`, () => roundTrip(fixture, kind, variant, context));
    }
  }
});

async function roundTrip(fixture: ApiFixture, kind: ResourceKind, variant: number, context: ValueContext) {
  const call = (method: DescMethodUnary, request: JsonObject): Promise<JsonObject> =>
    callJson(fixture, kind.version, method, request);
  const parent = await newParent(fixture, kind, context);
  const field = resourceField(kind);
  const first: Choice = { round: 0, variant };
  const scope = kind.create.input.fields.find(({ name }) => /^(parent|parent_id|repo_id|group)$/.test(name));
  assert.ok(scope, 'the scope of a create');
  const { [field ? '' : scope.jsonName]: _, ...sent } = messageValue(
    field ? kind.resource : kind.create.input,
    first,
    context,
  );
  const place = { [scope.jsonName]: parent };
  const created = await call(kind.create, field ? { ...place, [field.jsonName]: sent } : { ...sent, ...place });
  const uid = String(created[uidField(kind.resource).jsonName] ?? parent);
  const read = () => readOne(call, kind, uid, parent);
  assertReturned(kind.resource, sent, created);
  assertReturned(kind.resource, sent, await read());

  if (kind.update) {
    const changed = messageValue(kind.resource, { round: 1, variant }, context);
    if (!field) delete changed[scope.jsonName];
    for (const { jsonName } of kind.resource.fields.filter(isImmutable)) delete changed[jsonName];
    const input = kind.update.input;
    const wrapper = input.fields.find(({ message }) => message?.typeName === kind.resource.typeName);
    const identified = { ...changed, [uidField(wrapper ? kind.resource : input).jsonName]: uid };
    assert.notDeepEqual(changed, sent);
    const updateAll = wrapper
      ? { [wrapper.jsonName]: identified, updateMask: maskOf(kind.resource, changed) }
      : identified;
    const updated = await call(kind.update, updateAll);
    assertReturned(kind.resource, changed, updated);
    assertReturned(kind.resource, changed, await read());
    if (wrapper) {
      for (const { jsonName, localName } of kind.resource.fields) {
        if (!(jsonName in changed) || !(jsonName in sent)) continue;
        const resource = { [uidField(kind.resource).jsonName]: uid, [jsonName]: sent[jsonName] as JsonValue };
        await call(kind.update, { [wrapper.jsonName]: resource, updateMask: localName });
        assertReturned(kind.resource, { ...changed, [jsonName]: sent[jsonName] as JsonValue }, await read());
        await call(kind.update, updateAll);
      }
    }
  }

  if (kind.remove) {
    await call(kind.remove, { [kind.remove.input.fields[0]?.jsonName ?? 'uid']: uid });
    if (kind.read.name.startsWith('List')) assert.equal(await readOne(call, kind, uid, parent, 0), undefined);
    else await rejects(read(), Code.NOT_FOUND);
  }
}

type CallJson = (method: DescMethodUnary, request: JsonObject) => Promise<JsonObject>;

async function callJson(
  { api, server }: ApiFixture,
  version: ResourceKind['version'],
  method: DescMethodUnary,
  request: JsonObject,
): Promise<JsonObject> {
  const id = `${method.parent.typeName}/${method.name}`;
  const message = fromJson(method.input, request) as MessageInitShape<DescMessage>;
  const options = { token: server.token, id: version === 'v2beta1' ? (v2beta1Id(id) ?? id) : id };
  return toJson(method.output, await api.call(method, message, options)) as JsonObject;
}

const maskOf = ({ fields }: DescMessage, value: JsonObject): string =>
  fields.flatMap(({ jsonName, localName }) => (jsonName in value ? [localName] : [])).join();

/** Gets a resource, or lists it by its uid and expects `count` of them. */
async function readOne(call: CallJson, { read }: ResourceKind, uid: string, parent: string, count = 1) {
  const names = read.input.fields.map(({ name }) => name);
  const items = itemsField(read.output);
  if (!read.name.startsWith('List')) return call(read, { [read.input.fields[0]?.jsonName ?? '']: uid });
  const parentName = names.includes('parent') ? 'parent' : 'parentId';
  const filter = names.includes('id')
    ? { id: uid }
    : names.includes('group')
      ? { group: uid }
      : { [parentName]: parent };
  const found = ((await call(read, filter))[items?.jsonName ?? ''] ?? []) as JsonObject[];
  const matching = found.filter(({ id }) => id === undefined || id === uid);
  assert.equal(matching.length, count);
  return matching[0] as JsonObject;
}

/** Every field that was sent is in the response with the same value, except for secrets. */
function assertReturned(desc: DescMessage, sent: JsonObject, received: JsonObject, path = ''): void {
  for (const field of desc.fields) {
    const value = sent[field.jsonName];
    if (value === undefined || isInputOnly(field) || field.proto.options?.debugRedact) continue;
    assertFieldReturned(field, value, received[field.jsonName], `${path}${field.name}`);
  }
}

function assertFieldReturned(field: DescField, sent: JsonValue, received: JsonValue | undefined, path: string): void {
  const { message } = field;
  if (message === undefined || field.fieldKind === 'map' || typeof sent !== 'object') {
    assert.deepEqual(uidOf(received, sent) ?? defaultOf(sent), sent, path);
  } else if (field.fieldKind === 'list') {
    const [all, found] = [sent as JsonObject[], (received ?? []) as JsonObject[]];
    assert.equal(found.length, all.length, path);
    for (const [at, item] of all.entries()) assertReturned(message, item, found[at] ?? {}, `${path}[${at}].`);
  } else {
    assertReturned(message, sent as JsonObject, (received ?? {}) as JsonObject, `${path}.`);
  }
}

/** JSON has no fields with the default of their type. */
const defaultOf = (sent: JsonValue): JsonValue | undefined => (sent === false ? false : undefined);

/** A response may have the resource that the client named by its uid. */
const uidOf = (received: JsonValue | undefined, sent: JsonValue): JsonValue | undefined =>
  typeof sent === 'string' && typeof received === 'object' && received !== null && 'id' in received
    ? received.id
    : received;

let nameCount = 0;

async function newRepo({ api }: ApiFixture, parent: string): Promise<string> {
  return (await api.call(ReposService.method.createRepo, { parent, repo: { name: `repo-${++nameCount}` } })).uid;
}

/** Inserts two images, which are the same in every repo, and returns their digests. */
const insertImages = ({ server }: ApiFixture, repo: string): Promise<string[]> =>
  withStore(server, async (store) => {
    const [one, two] = [{ content: 'one' }, { content: 'two' }];
    return [
      (await insertImage(store, repo, undefined, one)).digest,
      (await insertImage(store, repo, undefined, two)).digest,
    ];
  });

/** Creates what a resource of the kind is in. */
async function newParent(fixture: ApiFixture, { resource }: ResourceKind, { org }: ValueContext): Promise<string> {
  const { api } = fixture;
  const name = `parent ${++nameCount}`;
  switch (resource.name) {
    case 'Tag': {
      const repo = await newRepo(fixture, org);
      await insertImages(fixture, repo);
      return repo;
    }
    case 'Deployment':
      return newRepo(fixture, org);
    case 'IdentityProvider':
      return org;
    case 'ExternalGroupRoleMapping': {
      const oidc = { issuer: 'https://login.example.com', clientId: 'id', clientSecret: 'secret' };
      const identityProvider = {
        name,
        defaultRole: builtinRoleUid('viewer'),
        configuration: { case: 'oidc' as const, value: oidc },
      };
      const { createIdentityProvider } = IdentityProvidersService.method;
      return (await api.call(createIdentityProvider, { parent: org, identityProvider })).uid;
    }
    case 'AdvisoryEvent':
      return (await api.call(Advisories.method.create, { parentId: org, advisory: { artifactName: name } })).id;
    default:
      return (await api.call(GroupsService.method.createGroup, { parent: org, group: { name } })).uid;
  }
}
