import { create } from '@bufbuild/protobuf';
import { EmptySchema, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { notFound, precondition } from '../../../base/errors.ts';
import { parentOf, parseUid, ROOT, type Uid } from '../../../base/uid.ts';
import type { Identity, IdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  DeleteServerIdentityRequestSchema,
  ListServerIdentitiesRequestSchema,
  ListServerIdentitiesResponseSchema,
  ServerIdentitiesService,
  type ServerIdentity,
  ServerIdentitySchema,
} from '../../../contract/gen/wharfinger/iam/v1/server_identities_pb.js';
import type { Resource, State, Stored } from '../../../resource/definition.ts';
import { deleteTree } from '../../../resource/delete.ts';
import type { Engine } from '../../../resource/engine.ts';
import { createLister, type ListRequest } from '../../../resource/list/list.ts';
import { type Operations, readOperation, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { find, findAll } from '../../../resource/read.ts';
import { requireServerWide } from '../../../resource/require-capabilities.ts';
import { update } from '../../../resource/write.ts';
import { putSetting } from '../../../store/settings.ts';
import type { Reader } from '../../../store/store.ts';
import { disable, disabledOf, enable } from '../disabled.ts';
import { groups } from '../groups/groups.ts';
import { endLogins } from './ended-logins.ts';
import { identities } from './identities.ts';
import { joinedProvidersOf } from './joined-providers.ts';
import { issuerAndSubject } from './relationship.ts';

const { method: methods } = ServerIdentitiesService;

/** The methods by which operators manage all identities. The pipeline checks that the caller is an operator. */
export function serverIdentityOperations(engine: Engine): Operations {
  // People have no parent. They are hidden from all other lists.
  const resource: Resource<typeof IdentitySchema> = { ...identities, rootIsPublic: true };
  const read = createLister(
    resource,
    ListServerIdentitiesRequestSchema,
    engine.pageTokens,
    [],
    [...engine.kinds.keys()],
  );

  return {
    ...readOperation(methods.listServerIdentities, async (ctx, request) => {
      const organizations = await organizationUids(ctx.db);
      const caller = { ...ctx.caller, reach: () => organizations };
      const page = await read({ ...ctx, caller }, request as unknown as ListRequest);
      const stored = await findAll(
        ctx.db,
        identities,
        page.messages.map(({ uid }) => uid),
      );
      const byUid = new Map(stored.map((each) => [each.uid as string, each]));
      return create(ListServerIdentitiesResponseSchema, {
        // One that was deleted since the page was read is omitted.
        serverIdentities: page.messages.flatMap(({ uid }) => toMessage(byUid.get(uid)) ?? []),
        nextPageToken: page.nextPageToken,
        totalCount: BigInt(page.totalCount),
        skipped: page.skipped,
      });
    }),

    ...readOperation(methods.getServerIdentity, async ({ db }, request) => {
      const uid = parseUid('uid', request.uid);
      return toMessage(await find(db, identities, uid)) ?? fail(uid);
    }),

    ...writeOperation(methods.disableServerIdentity, {
      run: (ctx, request) =>
        changeState(ctx, request.uid, 'disable', (state) =>
          disabledOf(state) ? state : disable(endLogins(state, ctx.now), { time: ctx.now, by: ctx.caller.uid }),
        ),
    }),

    ...writeOperation(methods.enableServerIdentity, {
      run: (ctx, request) => changeState(ctx, request.uid, 'enable', enable),
    }),

    ...writeOperation(methods.deleteServerIdentity, {
      async run(ctx, request) {
        const uid = requireOther(ctx, request.uid, 'delete');
        await lockAndCheckAgain(ctx);
        if (!(await deleteTree(ctx, engine.kinds, identities, uid))) throw notFound(identities.kind, uid);
        return create(EmptySchema);
      },
      event: (_ctx, request) => ({
        subject: request.uid,
        extensions: { group: groupOf(request.uid) },
        body: { schema: DeleteServerIdentityRequestSchema, message: request },
      }),
    }),
  };
}

const ORGANIZATIONS = 'SELECT uid FROM resource WHERE kind = $1 AND parent = $2 ORDER BY uid';

const organizationUids = async (db: Reader): Promise<Uid[]> =>
  (await db.all<{ uid: Uid }>(ORGANIZATIONS, groups.kind, ROOT)).map(({ uid }) => uid);

async function changeState(
  ctx: WriteContext,
  requestedUid: string,
  verb: string,
  change: (state: State | undefined) => State | undefined,
): Promise<ServerIdentity> {
  const uid = requireOther(ctx, requestedUid, verb);
  await lockAndCheckAgain(ctx);
  const before = (await find(ctx.db.forUpdate, identities, uid)) ?? fail(uid);
  const { message } = before;
  // An update invalidates the cached callers on all servers.
  return (
    toMessage(await update(ctx.db, identities, before, { message, state: change(before.state) }, ctx.now)) ?? fail(uid)
  );
}

/** Lets one change run at a time and checks the caller again, so that two operators cannot disable each other. */
async function lockAndCheckAgain({ db, caller, method, now }: WriteContext): Promise<void> {
  await putSetting(db, 'server-identities.changed', String(now));
  requireServerWide(method.capabilities, await caller.current(db));
}

/** Refuses the identity of the caller. So at least one identity that can undo the change keeps its access. */
function requireOther({ caller }: WriteContext, requestedUid: string, verb: string): Uid {
  const uid = parseUid('uid', requestedUid);
  if (uid === caller.uid) {
    throw precondition('OWN_IDENTITY', uid, `you cannot ${verb} your own identity here; ask another operator`);
  }
  return uid;
}

function fail(uid: string): never {
  throw notFound(identities.kind, uid);
}

const groupOf = (uid: string): string => (parentOf(uid) === ROOT ? '' : parentOf(uid));

function toMessage(stored: Stored<Identity> | undefined): ServerIdentity | undefined {
  if (!stored) return undefined;
  const { uid, message, state, created } = stored;
  const { issuer, subject } = issuerAndSubject(message.relationship);
  const disabled = disabledOf(state);
  return create(ServerIdentitySchema, {
    uid,
    name: message.name,
    email: message.email || message.emailUnverified,
    issuer,
    subject,
    group: groupOf(uid),
    disabled: disabled !== undefined,
    ...(disabled && { disableTime: timestampFromMs(disabled.time), disabledBy: disabled.by }),
    identityProviders: [...joinedProvidersOf(stored)],
    ...(message.lastSeenTime && { lastSeenTime: message.lastSeenTime }),
    createTime: timestampFromMs(created),
  });
}
