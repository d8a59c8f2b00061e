import {
  create,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { ApiError, invalidFields } from '../base/errors.ts';
import type { EventFacts, Operation, Operations } from '../resource/operation.ts';
import { refuse, validate } from '../resource/validate.ts';
import { vocabulary } from './message-mapper.ts';

/*
 * v1 is v2 in other words: a v1 operation rewords its request, runs the v2 operation, and rewords the answer and the
 * event. What may be done, and what is stored, is settled by v2 alone. For a resource that looks so:
 *
 *   const words = vocabulary(v1.RepoSchema, RepoSchema, { names: { id: 'uid' }, onlyV2: ['update_time'] });
 *
 *   export const repoOperations = (operations: Operations): Operations => ({
 *     ...adapt(operations, Registry.method.createRepo, ReposService.method.createRepo, {
 *       request: ({ parentId, repo }) => ({ parent: parentId, repo: words.toV2(repo) }),
 *       response: words.toV1,
 *       fields: { parent: 'parent_id' },
 *     }),
 *     ...adapt(operations, Registry.method.updateRepo, ReposService.method.updateRepo, {
 *       request: (repo) => ({ repo: words.toV2(repo), updateMask: words.replaced }),
 *       response: words.toV1,
 *     }),
 *     ...listAll(operations, Registry.method.listRepos, ReposService.method.listRepos, {
 *       request: ({ uidp, id, name }) => ({ uidp: within(uidp, id), name }),
 *       response: ({ repos }) => repos.map(words.toV1),
 *     }),
 *   });
 *
 * and is then named in compat.ts. Where v1 pages as v2 does, `adapt` serves its lists too.
 */

/** A method of a service, which knows the types of its messages. */
export type Unary = DescMethodUnary;

export type Input<M extends Unary> = MessageShape<M['input']>;
export type Output<M extends Unary> = MessageShape<M['output']>;
export type InputOf<M extends Unary> = MessageInitShape<M['input']>;
type OutputOf<M extends Unary> = MessageInitShape<M['output']>;

export interface Rewording<V1 extends Unary, V2 extends Unary> {
  request(message: Input<V1>): InputOf<V2>;
  /** Absent where both answer nothing. */
  response?(message: Output<V2>, asked: Input<V1>): OutputOf<V1>;
  /** What v1 calls the fields that v2 may complain about. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Where the v1 event differs in more than the message that is its body. */
  event?(facts: EventFacts, response: Output<V1>): EventFacts;
}

/** For a method whose request and answer differ in names only. */
export function sameBut<V1 extends Unary, V2 extends Unary>(
  v1: V1,
  v2: V2,
  names: Readonly<Record<string, string>>,
): Rewording<V1, V2> {
  const asked = vocabulary(v1.input, v2.input, { names });
  const answered = vocabulary(v1.output, v2.output, { names });
  return {
    request: (message) => asked.toV2(message) as InputOf<V2>,
    response: (message) => answered.toV1(message) as OutputOf<V1>,
    fields: Object.fromEntries(Object.entries(names).map(([ours, theirs]) => [theirs, ours])),
  };
}

/** The id of a method in the method table. */
export const idOf = ({ parent, name }: { readonly parent: DescService; readonly name: string }): string =>
  `${parent.typeName}/${name}`;

/** The v2 method `v2` under the name of `v1`. */
export function adapt<V1 extends Unary, V2 extends Unary>(
  operations: Operations,
  v1: V1,
  v2: V2,
  words: Rewording<V1, V2>,
): Operations {
  const operation = operationOf(operations, v2);
  const ask = (message: Message) => create(v2.input, words.request(message as Input<V1>));
  const answer = (message: Message, asked: Message) =>
    create(v1.output, words.response?.(message as Output<V2>, asked as Input<V1>));
  const named = inWordsOf(words.fields);
  if (operation.mode === 'read') {
    const run: typeof operation.run = (ctx, request) =>
      named(async () => answer(await operation.run(ctx, ask(request)), request));
    return { [idOf(v1)]: { mode: 'read', run } };
  }

  const { appendOnly, prepare, event } = operation;
  const judge = judgeOf(v2);
  const judged = (message: Message) => {
    const request = ask(message);
    judge(request);
    return request;
  };
  /** What v2 was asked and answered, by the v1 answer: from the run of a write to its event. */
  const done = new WeakMap<Message, { readonly request: Message; readonly response: Message }>();
  const adapted: Operation = {
    mode: 'write',
    appendOnly,
    ...(prepare && { prepare: (ctx, request) => named(() => prepare(ctx, judged(request))) }),
    run: (ctx, request, prepared) =>
      named(async () => {
        const asked = judged(request);
        const response = await operation.run(ctx, asked, prepared);
        const answered = answer(response, request);
        done.set(answered, { request: asked, response });
        return answered;
      }),
    ...(event && {
      event(ctx, request, response) {
        const v2Call = done.get(response);
        if (!v2Call) throw new Error(`${idOf(v1)}: its event is asked for before it ran`);
        const { body, ...facts } = event(ctx, v2Call.request, v2Call.response);
        // A deletion tells what was asked, all else what was answered; what v2 keeps out of it stays out.
        const isRequest = body?.schema.typeName === v2.input.typeName;
        const told = isRequest
          ? { schema: v1.input, message: request }
          : body && { schema: v1.output, message: answer(body.message, request) };
        const reworded = { ...facts, body: told };
        return words.event?.(reworded, response as Output<V1>) ?? reworded;
      },
    }),
  };
  return { [idOf(v1)]: adapted };
}

/** Operations of v2 answer at once: what is long, they have pages of. */
export function operationOf(operations: Operations, method: Unary): Exclude<Operation, { readonly mode: 'stream' }> {
  const operation = operations[idOf(method)];
  if (!operation || operation.mode === 'stream') throw new Error(`compat: there is no operation for ${idOf(method)}`);
  return operation;
}

/**
 * Refuses a write that lacks what v2 requires: v1 itself requires nothing. A read that lacks something just finds
 * nothing, as ever in v1. A resource inside is judged by the engine, as it is in v2.
 */
function judgeOf(v2: Unary): (request: Message) => void {
  const judged = new Set(v2.input.fields.filter(({ fieldKind }) => fieldKind !== 'message').map(({ name }) => name));
  return (request) => refuse(validate(v2.input, request, {}, judged));
}

/** Lets complaints name fields as the caller knows them. */
export function inWordsOf(
  fields: Readonly<Record<string, string>> = {},
): <T>(work: () => T | Promise<T>) => Promise<T> {
  return async (work) => {
    try {
      return await work();
    } catch (error) {
      const found = error instanceof ApiError && error.details.find((detail) => detail.type === 'BadRequest');
      if (!found) throw error;
      throw invalidFields(
        found.fieldViolations.map(({ field, description }) => ({ field: renamed(field, fields), description })),
      );
    }
  };
}

/** Each part of a path by itself, whatever index it carries: `requests[0].role_uid`. */
const renamed = (path: string, fields: Readonly<Record<string, string>>): string =>
  path.replace(/[a-z_]\w*/g, (name) => fields[name] ?? name);
