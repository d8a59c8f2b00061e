import {
  clone,
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
} from '@bufbuild/protobuf';
import { EmptySchema, type FieldMask } from '@bufbuild/protobuf/wkt';
import { notFound } from '../base/errors.ts';
import { whenKnown } from '../base/maybe-promise.ts';
import { newUid, parentOf } from '../base/uid.ts';
import type { Resource, State } from './definition.ts';
import { type Kinds, removeTree } from './delete.ts';
import { createLister, type ListRequest } from './list/list.ts';
import type { PageTokens } from './list/page-token.ts';
import type { EventFacts, Operation, Operations, WriteContext } from './operation.ts';
import { find, findShown, mayChange } from './read.ts';
import { applyMask } from './update-mask.ts';
import { clearOutputOnly, refuse, validate } from './validate.ts';
import { holdParent, insert, update } from './write.ts';

export interface Engine {
  readonly kinds: Kinds;
  readonly tokens: PageTokens;
}

/** Any message, by local field name. */
type Fields = Message & Record<string, unknown>;

/**
 * The standard methods of a service on `resource`, by method id: whatever of Get, List, Create, Update and Delete the
 * contract has. The rest is the domain's own business.
 */
export function standardOperations(engine: Engine, resource: Resource, service: DescService): Operations {
  const found: Record<string, Operation> = {};
  for (const method of service.methods) {
    const build = builders.find(({ fits }) => fits(method, resource));
    if (build) found[`${service.typeName}/${method.name}`] = build.operation(engine, resource, method);
  }
  return found;
}

interface Builder {
  fits(method: DescMethod, resource: Resource): boolean;
  operation(engine: Engine, resource: Resource, method: DescMethod): Operation;
}

const answers = (method: DescMethod, resource: Resource): boolean =>
  method.output.typeName === resource.schema.typeName;

const builders: readonly Builder[] = [
  { fits: (m, r) => m.name.startsWith('Get') && answers(m, r), operation: (_, resource) => get(resource) },
  { fits: (m, r) => m.name.startsWith('List') && listField(m.output, r) !== undefined, operation: list },
  { fits: (m, r) => m.name.startsWith('Create') && answers(m, r), operation: (_, r, m) => createOne(r, m) },
  { fits: (m, r) => m.name.startsWith('Update') && answers(m, r), operation: (_, r, m) => updateOne(r, m) },
  { fits: (m) => m.name.startsWith('Delete'), operation: deleteOne },
];

function get(resource: Resource): Operation {
  return {
    mode: 'read',
    run(ctx, request) {
      const uid = (request as Fields).uid as string;
      return whenKnown(findShown(ctx.db, resource, uid), (message) => {
        if (!message) throw notFound(resource.kind, uid);
        if (!mayChange(resource, message)) return message;
        return whenKnown(resource.present?.(ctx, [message]), () => message);
      });
    },
  };
}

function list(engine: Engine, resource: Resource, method: DescMethod): Operation {
  const read = createLister(resource, method.input, engine.tokens);
  const items = listField(method.output, resource) as DescField;
  const total = method.output.field.totalCount;
  return {
    mode: 'read',
    async run(ctx, request) {
      const { messages, totalCount, ...envelope } = await read(ctx, request as ListRequest);
      const changing = resource.present ? messages.filter((message) => mayChange(resource, message)) : [];
      if (changing.length > 0) await resource.present?.(ctx, changing as never);
      const response = create(method.output) as Fields;
      Object.assign(response, envelope, { [items.localName]: messages });
      if (total) response.totalCount = BigInt(totalCount);
      return response;
    },
  };
}

function createOne(resource: Resource, method: DescMethod): Operation {
  const field = resourceField(method.input, resource);
  return {
    mode: 'write',
    adds: true,
    async run(ctx, request) {
      const asked = (request as Fields).parent as string;
      const parent = (await resource.resolveParent?.(ctx, asked)) ?? asked;
      const message = ((request as Fields)[field.localName] ?? create(resource.schema)) as Message;
      return createResource(ctx, resource, message, parent);
    },
    event: (_ctx, _request, response) => eventOf(resource, 'create', resource.schema, response),
  };
}

/**
 * Validates and stores a new resource; the way in for every create, whatever its method looks like. A method that
 * knows what the message cannot say, such as the hash of a code that it hands out, gives it as `known`.
 */
export async function createResource(
  ctx: WriteContext,
  resource: Resource,
  asked: Message,
  parent: string,
  known?: State,
): Promise<Message> {
  // A copy, because a write may run again after a conflict, and must then find the request as it came.
  const message = clone(resource.schema, asked);
  clearOutputOnly(resource.schema, message);
  refuse([...validate(resource.schema, message, resource.rules), ...(resource.check?.(message as never) ?? [])]);
  await holdParent(ctx.db, resource, parent);
  const uid = resource.sharesParentUid ? parent : newUid(parent);
  const added = await resource.beforeCreate?.(ctx, message as never, { uid, parent });
  const state = known || added ? { ...known, ...added } : undefined;
  const stored = await insert(ctx.db, resource, { message, uid, parent, state }, ctx.now);
  await resource.afterCreate?.(ctx, stored);
  return presented(ctx, resource, stored.message);
}

function updateOne(resource: Resource, method: DescMethod): Operation {
  const field = resourceField(method.input, resource);
  return {
    mode: 'write',
    async run(ctx, request) {
      // A copy, as in createResource: the mask moves parts of it into what is stored.
      const source = clone(resource.schema, (request as Fields)[field.localName] as Message) as Fields;
      const mask = (request as Fields).updateMask as FieldMask | undefined;
      const before = await find(ctx.db, resource, source.uid as string, ctx.db.lock.update);
      if (!before) throw notFound(resource.kind, source.uid as string);
      const message = clone(resource.schema, before.message);
      const touched = applyMask(resource.schema, message, source, mask?.paths);
      if (touched.size === 0) {
        ctx.unchanged();
        return presented(ctx, resource, before.message);
      }
      refuse([
        ...validate(resource.schema, message, resource.rules, touched),
        ...(resource.check?.(message as never) ?? []),
      ]);
      const state = (await resource.beforeUpdate?.(ctx, before, message as never, touched)) ?? before.state;
      const after = await update(ctx.db, resource, before, { message, state }, ctx.now);
      return presented(ctx, resource, after.message);
    },
    event: (_ctx, _request, response) => eventOf(resource, 'update', resource.schema, response),
  };
}

function deleteOne(engine: Engine, resource: Resource, method: DescMethod): Operation {
  return {
    mode: 'write',
    async run(ctx, request) {
      const uid = (request as Fields).uid as string;
      if (!(await removeTree(ctx, engine.kinds, resource, uid))) {
        if (!resource.deletesTwice) throw notFound(resource.kind, uid);
        ctx.unchanged();
      }
      return create(EmptySchema);
    },
    event: (_ctx, request) => eventOf(resource, 'delete', method.input, request),
  };
}

type Change = 'create' | 'update' | 'delete';

/** `message` carries the uid: it is the resource itself or, for a deletion, the request. */
function eventOf(resource: Resource, change: Change, schema: DescMessage, message: Message): EventFacts {
  const uid = (message as Fields).uid as string;
  const place = resource.event?.(change, message as never) ?? {};
  const { subject = uid, group = parentOf(uid), extensions, withoutBody } = place;
  const body = withoutBody ? undefined : { schema, message };
  return { subject, extensions: { group, ...extensions }, body };
}

/** What is stored may be hydrated for the answer, so the answer is a copy. */
async function presented(ctx: WriteContext, resource: Resource, message: Message): Promise<Message> {
  if (!resource.present) return message;
  const copy = clone(resource.schema, message);
  await resource.present(ctx, [copy] as never);
  return copy;
}

const listField = (output: DescMessage, resource: Resource): DescField | undefined =>
  output.fields.find((f) => f.fieldKind === 'list' && f.message?.typeName === resource.schema.typeName);

function resourceField(input: DescMessage, resource: Resource): DescField {
  const field = input.fields.find((f) => f.fieldKind === 'message' && f.message.typeName === resource.schema.typeName);
  if (!field) throw new Error(`${input.typeName} has no field of type ${resource.schema.typeName}`);
  return field;
}
