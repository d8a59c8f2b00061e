import { create } from '@bufbuild/protobuf';
import { EmptySchema, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { denied, notFound } from '../../base/errors.ts';
import { parentOf, parseUid, type Uid } from '../../base/uid.ts';
import { type CapabilitySet, capabilityName, hasCapability } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  EndSessionsResponseSchema,
  ListSessionsResponseSchema,
  type Session,
  SessionSchema,
  SessionsService,
} from '../../contract/gen/wharfinger/iam/v1/sessions_pb.js';
import { endLogins } from '../../domains/iam/identities/ended-logins.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import type { Stored } from '../../resource/definition.ts';
import { pageSize } from '../../resource/list/list.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import { type CallContext, type Operations, readOperation, writeOperation } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import { holdsServerWide, missingCapabilities } from '../../resource/require-capabilities.ts';
import { update } from '../../resource/write.ts';
import { type AccessTokens, bearerToken } from '../tokens/access-tokens.ts';
import { decodeLogin } from '../tokens/refresh-tokens.ts';
import { endAllSessions, endSession, listSessions, type SessionRow } from '../tokens/sessions.ts';
import { credentialFingerprintOf } from './login-validity.ts';

export interface SessionServiceOptions {
  readonly accessTokens: Pick<AccessTokens, 'verify'>;
  readonly pageTokens: PageTokens;
}

const { method } = SessionsService;
const SERVER_LIST = [Capability.CAP_SERVER_IDENTITIES_LIST];
const SERVER_UPDATE = [Capability.CAP_SERVER_IDENTITIES_UPDATE];

export function sessionOperations({ accessTokens, pageTokens }: SessionServiceOptions): Operations {
  /** The session and the capabilities of the access token that was sent. Both are undefined for a federated token. */
  const tokenOf = async ({ authorization }: CallContext): Promise<TokenFacts> =>
    (await accessTokens.verify(bearerToken(authorization))) ?? {};

  return {
    ...readOperation(method.listSessions, async (ctx, request) => {
      const { db, caller, now } = ctx;
      const uid = identityOf(ctx, request.identity);
      const token = await tokenOf(ctx);
      requireSessionAccess(ctx, uid, SERVER_LIST, token);
      const limit = pageSize(request.pageSize);
      const query = JSON.stringify([ctx.method.id, uid, caller.uid]);
      const after = request.pageToken === '' ? undefined : pageTokens.read(request.pageToken, query, now)?.uid;
      const identity = await find(db, identities, uid);
      if (!identity) throw notFound(identities.kind, uid);
      // One more than the page size, which shows whether there is a next page.
      const rows = await listSessions(db, uid, now, { after, limit: limit + 1 });
      const page = rows.slice(0, limit);
      const last = rows.length > limit ? page.at(-1) : undefined;
      return create(ListSessionsResponseSchema, {
        sessions: page.filter((row) => isValid(identity, row)).map((row) => toMessage(row, token.session)),
        nextPageToken: last ? pageTokens.issue({ uid: last.uid, keys: [] }, query, now) : '',
      });
    }),

    ...writeOperation(method.deleteSession, {
      prepare: tokenOf,
      async run(ctx, request, token) {
        const uid = parseUid('uid', request.uid);
        if (uid !== token.session) requireSessionAccess(ctx, parentOf(uid), SERVER_UPDATE, token);
        if (!(await endSession(ctx.db, uid))) throw notFound('session', uid);
        return create(EmptySchema);
      },
    }),

    ...writeOperation(method.endSessions, {
      prepare: tokenOf,
      async run(ctx, request, token) {
        const uid = parseUid('identity', request.identity);
        requireSessionAccess(ctx, uid, SERVER_UPDATE, token);
        const before = await find(ctx.db.forUpdate, identities, uid);
        if (!before) throw notFound(identities.kind, uid);
        const state = endLogins(before.state, ctx.now);
        await update(ctx.db, identities, before, { message: before.message, state }, ctx.now);
        return create(EndSessionsResponseSchema, { ended: await endAllSessions(ctx.db, uid) });
      },
    }),
  };
}

interface TokenFacts {
  readonly session?: string | undefined;
  readonly capabilities?: CapabilitySet | undefined;
}

const identityOf = ({ caller }: CallContext, requested: string): string =>
  requested === '' ? caller.uid : parseUid('identity', requested);

/**
 * Refuses a caller that may not see or end the sessions of an identity. Every identity may do so for its own sessions,
 * unless its token is restricted to other capabilities.
 */
function requireSessionAccess(
  { caller, method: { capabilities } }: CallContext,
  identity: string,
  serverWide: readonly Capability[],
  token: TokenFacts,
): void {
  if (identity !== caller.uid) {
    if (caller.can(capabilities, identity as Uid) || holdsServerWide(serverWide, caller)) return;
    throw missingCapabilities(capabilities, identity);
  }
  const { capabilities: limit } = token;
  const missing = limit === undefined ? [] : capabilities.filter((capability) => !hasCapability(limit, capability));
  if (missing.length === 0) return;
  throw denied(
    `your token is restricted to capabilities that do not include ${missing.map(capabilityName).join(', ')}`,
  );
}

/** Whether the login of a session is that of the present identity, and was not ended with all its logins. */
function isValid(identity: Stored<Identity>, row: SessionRow): boolean {
  const { credentialFingerprint } = decodeLogin(row);
  return identity.created <= row.created && credentialFingerprintOf(identity) === credentialFingerprint;
}

function toMessage(row: SessionRow, current: string | undefined): Session {
  const { uid, identity, created, used, expires, address, user_agent } = row;
  const { act, provider } = decodeLogin(row);
  return create(SessionSchema, {
    ...{ uid, identity, address, userAgent: user_agent },
    issuer: act?.iss ?? '',
    identityProvider: provider?.uid ?? '',
    lastUseTime: timestampFromMs(used),
    expireTime: timestampFromMs(expires),
    createTime: timestampFromMs(created),
    current: uid === current,
  });
}
