import {
  clone,
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
  type MessageShape,
} from '@bufbuild/protobuf';
import { EmptySchema, type FieldMask } from '@bufbuild/protobuf/wkt';
import { notFound } from '../base/errors.ts';
import { chain } from '../base/maybe-promise.ts';
import { newUid, type ParentUid, parentOf, ROOT } from '../base/uid.ts';
import { methodId } from '../contract/method.ts';
import type { ChangeKind, Resource, State } from './definition.ts';
import { deleteTree } from './delete.ts';
import type { Engine } from './engine.ts';
import { createLister, type ListRequest } from './list/list.ts';
import type { EventFacts, Operation, Operations, WriteContext } from './operation.ts';
import { requireParent } from './parent.ts';
import { find } from './read.ts';
import { findMessage, needsPresenting } from './read-message.ts';
import { applyMask } from './update-mask.ts';
import { clearOutputOnly, refuse, validate } from './validate.ts';
import { insert, update } from './write.ts';

/** A message as a record of its fields, by local name. The schema is known only at run time here. */
type Fields = Message & Record<string, unknown>;

/**
 * The standard methods (AIP-130) of `resource` in `service`: those of GetX, ListXs, CreateX, UpdateX and DeleteX that the
 * contract has, where X is the name of the resource's message. Other methods are the business of the domain.
 */
export function standardOperations(engine: Engine, resource: Resource, service: DescService): Operations {
  const operations: Record<string, Operation> = {};
  for (const method of service.methods) {
    const operation = standardOperation(engine, resource, method);
    if (operation) operations[methodId(method)] = operation;
  }
  return operations;
}

function standardOperation(engine: Engine, resource: Resource, method: DescMethod): Operation | undefined {
  const { name } = resource.schema;
  switch (method.name) {
    case `Get${name}`:
      return getOperation(resource);
    case `Create${name}`:
      return createOperation(resource, method);
    case `Update${name}`:
      return updateOperation(resource, method);
    case `Delete${name}`:
      return deleteOperation(engine, resource, method);
    default:
      return method.name.startsWith('List') ? listOperation(engine, resource, method) : undefined;
  }
}

function getOperation(resource: Resource): Operation {
  return {
    mode: 'read',
    run(ctx, request) {
      const uid = (request as Fields).uid as string;
      return chain(findMessage(ctx.db, resource, uid), (message) => {
        if (!message) throw notFound(resource.kind, uid);
        if (!needsPresenting(resource, message)) return message;
        return chain(resource.present?.(ctx, [message]), () => message);
      });
    },
  };
}

function listOperation(engine: Engine, resource: Resource, method: DescMethod): Operation | undefined {
  const items = listField(method.output, resource);
  if (!items) return undefined;
  const read = createLister(resource, method.input, engine.pageTokens, [], [...engine.kinds.keys()]);
  const total = method.output.field.totalCount;
  return {
    mode: 'read',
    async run(ctx, request) {
      const { messages, totalCount, ...envelope } = await read(ctx, request as ListRequest);
      const presented = resource.present ? messages.filter((message) => needsPresenting(resource, message)) : [];
      if (presented.length > 0) await resource.present?.(ctx, presented as never);
      const response = create(method.output) as Fields;
      Object.assign(response, envelope, { [items.localName]: messages });
      if (total) response.totalCount = BigInt(totalCount);
      return response;
    },
  };
}

function createOperation(resource: Resource, method: DescMethod): Operation {
  const field = resourceField(method.input, resource);
  return {
    mode: 'write',
    appendOnly: true,
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
 * Validates and stores a new resource. Every create goes through here, whatever its method is called. `state` is private
 * state that the message cannot provide, such as the hash of a code that the method returns.
 */
export async function createResource<S extends DescMessage>(
  ctx: WriteContext,
  resource: Resource<S>,
  asked: MessageShape<S>,
  requestedParent: string,
  state?: State,
): Promise<MessageShape<S>> {
  // A copy, because the write may run again after a conflict and must find the request unchanged.
  const message = clone(resource.schema, asked);
  clearOutputOnly(resource.schema, message);
  refuse([...validate(resource.schema, message, resource.rules), ...(resource.check?.(message) ?? [])]);
  const isRoot = requestedParent === ROOT && resource.parents.includes(ROOT);
  const parent: ParentUid = isRoot ? ROOT : await requireParent(ctx.db.forShare, resource, requestedParent);
  const uid = resource.sharesParentUid && parent !== ROOT ? parent : newUid(parent);
  const added = await resource.beforeCreate?.(ctx, message, { uid, parent });
  const draft = { message, uid, parent, state: state || added ? { ...state, ...added } : undefined };
  const stored = await insert(ctx.db, resource, draft, ctx.now);
  await resource.afterCreate?.(ctx, stored);
  return presented(ctx, resource, stored.message);
}

function updateOperation(resource: Resource, method: DescMethod): Operation {
  const field = resourceField(method.input, resource);
  return {
    mode: 'write',
    async run(ctx, request) {
      // A copy, as in createResource: the mask moves parts of it into the stored message.
      const source = clone(resource.schema, (request as Fields)[field.localName] as Message) as Fields;
      const mask = (request as Fields).updateMask as FieldMask | undefined;
      const before = await find(ctx.db.forUpdate, resource, source.uid as string);
      if (!before) throw notFound(resource.kind, source.uid as string);
      const message = clone(resource.schema, before.message);
      const touched = applyMask(resource.schema, message, source, mask?.paths);
      if (touched.size === 0) {
        ctx.unchanged();
        return presented(ctx, resource, before.message);
      }
      refuse([...validate(resource.schema, message, resource.rules, touched), ...(resource.check?.(message) ?? [])]);
      const state = (await resource.beforeUpdate?.(ctx, before, message, touched)) ?? before.state;
      const after = await update(ctx.db, resource, before, { message, state }, ctx.now);
      await resource.afterUpdate?.(ctx, before, after);
      return presented(ctx, resource, after.message);
    },
    event: (_ctx, _request, response) => eventOf(resource, 'update', resource.schema, response),
  };
}

function deleteOperation(engine: Engine, resource: Resource, method: DescMethod): Operation {
  return {
    mode: 'write',
    async run(ctx, request) {
      const uid = (request as Fields).uid as string;
      if (!(await deleteTree(ctx, engine.kinds, resource, uid))) {
        if (!resource.idempotentDelete) throw notFound(resource.kind, uid);
        ctx.unchanged();
      }
      return create(EmptySchema);
    },
    event: (_ctx, request) => eventOf(resource, 'delete', method.input, request),
  };
}

/** `message` carries the uid: it is the resource or, for a deletion, the request. */
function eventOf(resource: Resource, change: ChangeKind, schema: DescMessage, message: Message): EventFacts {
  const uid = (message as Fields).uid as string;
  const override = resource.event?.(change, message as never) ?? {};
  const { subject = uid, group = parentOf(uid), extensions } = override;
  return { subject, extensions: { group, ...extensions }, body: { schema, message: override.message ?? message } };
}

/** A copy for the response, because `present` may change it. */
async function presented<S extends DescMessage>(
  ctx: WriteContext,
  resource: Resource<S>,
  message: MessageShape<S>,
): Promise<MessageShape<S>> {
  if (!resource.present) return message;
  const copy = clone(resource.schema, message);
  await resource.present(ctx, [copy]);
  return copy;
}

const listField = (output: DescMessage, resource: Resource): DescField | undefined =>
  output.fields.find((f) => f.fieldKind === 'list' && f.message?.typeName === resource.schema.typeName);

function resourceField(input: DescMessage, resource: Resource): DescField {
  const field = input.fields.find((f) => f.fieldKind === 'message' && f.message.typeName === resource.schema.typeName);
  if (!field) throw new Error(`${input.typeName} has no field of type ${resource.schema.typeName}`);
  return field;
}
