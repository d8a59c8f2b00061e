import { create, type DescMethodUnary, type Message } from '@bufbuild/protobuf';
import { methodId } from '../contract/method.ts';
import { type EventFacts, type Operations, readOperation, writeOperation } from '../resource/operation.ts';
import { refuse, validate } from '../resource/validate.ts';
import { convertEventBodies, createEventBodyConverter } from './event-body.ts';
import { createMessageMapper } from './message-mapper.ts';
import { createViolationRenamer, type V1FieldNames } from './rename-violations.ts';
import {
  type RequestInitOf,
  type RequestOf,
  type ResponseInitOf,
  type ResponseOf,
  requireOperation,
} from './typed-operation.ts';

/*
 * A v1 method is an adapter over a v2 operation. The adapter maps the v1 request to a v2 request, runs the operation, and
 * maps the response back to v1. Validation and storage are implemented in v2 only. Both methods emit the same event, with
 * a body of v1 (see event-body.ts), so the adapter of a write also replaces the operation of the v2 method.
 *
 * The adapters of a resource:
 *
 *   const mapper = createMessageMapper(v1.RepoSchema, RepoSchema, { renames: { id: 'uid' }, onlyV2: ['update_time'] });
 *
 *   export const repoOperations = (operations: Operations): Operations => ({
 *     ...adapt(operations, Registry.method.createRepo, ReposService.method.createRepo, {
 *       request: ({ parentId, repo }) => ({ parent: parentId, repo: mapper.toV2(repo) }),
 *       response: mapper.toV1,
 *       v1FieldNames: { parent: 'parent_id' },
 *     }),
 *     ...adapt(operations, Registry.method.updateRepo, ReposService.method.updateRepo, {
 *       request: (repo) => ({ repo: mapper.toV2(repo), updateMask: mapper.fullUpdateMask }),
 *       response: mapper.toV1,
 *     }),
 *     ...adaptList(operations, Registry.method.listRepos, ReposService.method.listRepos, {
 *       request: ({ uidp, id, name }) => ({ uidp: uidpFilterOf(uidp, id), name }),
 *       response: ({ repos }) => repos.map(mapper.toV1),
 *     }),
 *   });
 *
 * Add the result to compat.ts. Use `adapt` also for a v1 list that is paged as in v2.
 */

/** How the messages of a v1 method correspond to those of a v2 method. */
export interface MethodMapping<V1 extends DescMethodUnary, V2 extends DescMethodUnary> {
  request(request: RequestOf<V1>): RequestInitOf<V2>;
  /** Absent if both responses are empty. */
  response?(response: ResponseOf<V2>, request: RequestOf<V1>): ResponseInitOf<V1>;
  /** For the violations that v2 reports. */
  readonly v1FieldNames?: V1FieldNames;
  /** Changes the event of a call of v1, where it differs from that of a call of v2. */
  event?(facts: EventFacts, response: ResponseOf<V1>): EventFacts;
}

/** Implements the v1 method by the v2 method, where the messages differ only in the names of fields (v1 to v2). */
export function adaptByRenames<V1 extends DescMethodUnary, V2 extends DescMethodUnary>(
  operations: Operations,
  v1: V1,
  v2: V2,
  renames: Readonly<Record<string, string>>,
): Operations {
  const requests = createMessageMapper(v1.input, v2.input, { renames });
  const responses = createMessageMapper(v1.output, v2.output, { renames });
  return adapt(operations, v1, v2, {
    request: (request) => requests.toV2(request) as RequestInitOf<V2>,
    response: (response) => responses.toV1(response) as ResponseInitOf<V1>,
    v1FieldNames: Object.fromEntries(Object.entries(renames).map(([v1Name, v2Name]) => [v2Name, v1Name])),
  });
}

/** Implements the v1 method by the v2 method. Returns also the v2 operation, with the event that both emit. */
export function adapt<V1 extends DescMethodUnary, V2 extends DescMethodUnary>(
  operations: Operations,
  v1: V1,
  v2: V2,
  mapping: MethodMapping<V1, V2>,
): Operations {
  const operation = requireOperation(operations, v2);
  const toV2Request = (request: RequestOf<V1>): RequestOf<V2> =>
    create<V2['input']>(v2.input, mapping.request(request));
  const toV1Response = (response: ResponseOf<V2>, request: RequestOf<V1>): ResponseOf<V1> =>
    create<V1['output']>(v1.output, mapping.response?.(response, request));
  const renameViolations = createViolationRenamer(mapping.v1FieldNames);
  if (operation.mode === 'read') {
    return readOperation(v1, (ctx, request) =>
      renameViolations(async () => toV1Response(await operation.run(ctx, toV2Request(request)), request)),
    );
  }

  const { appendOnly, prepare, event } = operation;
  const validateRequest = createRequestValidator(v2);
  const toValidV2Request = (request: RequestOf<V1>): RequestOf<V2> => {
    const v2Request = toV2Request(request);
    validateRequest(v2Request);
    return v2Request;
  };
  /** The v2 request and response by the v1 response. `run` records them for `event`. */
  const v2Calls = new WeakMap<Message, { readonly request: RequestOf<V2>; readonly response: ResponseOf<V2> }>();
  // No mapping of a method with an event reads the request, which does not exist for a call of v2.
  const noRequest = create(v1.input) as RequestOf<V1>;
  const toEventBody = createEventBodyConverter(v1, v2, (body) => toV1Response(body as ResponseOf<V2>, noRequest));
  const v1Operation = writeOperation<V1, unknown>(v1, {
    appendOnly,
    ...(prepare && { prepare: (ctx, request) => renameViolations(() => prepare(ctx, toValidV2Request(request))) }),
    run: (ctx, request, prepared) =>
      renameViolations(async () => {
        const v2Request = toValidV2Request(request);
        const v2Response = await operation.run(ctx, v2Request, prepared);
        const response = toV1Response(v2Response, request);
        v2Calls.set(response, { request: v2Request, response: v2Response });
        return response;
      }),
    ...(event && {
      event(ctx, _request, response) {
        const v2Call = v2Calls.get(response);
        if (!v2Call) throw new Error(`${methodId(v1)}: the event was requested before the operation ran`);
        const { body, ...facts } = event(ctx, v2Call.request, v2Call.response);
        const v1Facts = { ...facts, body: body && toEventBody(body, v2Call.response) };
        return mapping.event?.(v1Facts, response) ?? v1Facts;
      },
    }),
  });
  return { ...v1Operation, ...convertEventBodies(operations, v2, toEventBody) };
}

/**
 * Returns a function that refuses a v2 request without its required fields, because v1 declares none as required. Only
 * writes are validated: a v1 read without an identifier finds nothing. The engine validates the resource in a request.
 */
function createRequestValidator(v2: DescMethodUnary): (request: Message) => void {
  const names = new Set(v2.input.fields.filter(({ fieldKind }) => fieldKind !== 'message').map(({ name }) => name));
  return (request) => refuse(validate(v2.input, request, {}, names));
}
