import { clone, create } from '@bufbuild/protobuf';
import { durationFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, renamingFields } from '../../../base/errors.ts';
import {
  type GroupInvite,
  GroupInviteSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import {
  GroupInviteUpdatesService,
  type UpdateGroupInviteRequest,
  UpdateGroupInviteRequestSchema,
} from '../../../contract/gen/wharfinger/iam/v1/group_invite_updates_pb.js';
import { methodId } from '../../../contract/method.ts';
import type { Engine } from '../../../resource/engine.ts';
import { type Operations, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { groupInvites, inviteEvent } from './group-invites.ts';

/** The paths of a mask that name the expiration. */
const EXPIRATION_PATHS: readonly string[] = ['expiration_time', 'expirationTime'];

/** The update of the standard methods, which also takes the new expiration as a time. */
export function updateGroupInviteOperations(engine: Engine): Operations {
  const method = GroupInviteUpdatesService.method.updateGroupInvite;
  const standard = standardOperations(engine, groupInvites, GroupInviteUpdatesService)[methodId(method)];
  if (standard?.mode !== 'write') throw new Error('the contract has no update of group invites');
  return writeOperation(method, {
    async run(ctx, request) {
      const withTtl = await expirationAsTtl(ctx, request);
      if (!withTtl) return (await standard.run(ctx, request, undefined)) as GroupInvite;
      const rename = (field: string): string => (field === 'ttl' ? 'expiration_time' : field);
      return renamingFields(rename, async () => (await standard.run(ctx, withTtl, undefined)) as GroupInvite);
    },
    event: (_ctx, _request, invite) => inviteEvent(invite),
  });
}

/**
 * The request with the time until `expiration_time` as `ttl`, for which the limits are declared. Undefined if the request
 * does not change `expiration_time`: clients may send back what they have read.
 */
async function expirationAsTtl(
  { db, now }: WriteContext,
  { groupInvite: invite, updateMask }: UpdateGroupInviteRequest,
): Promise<UpdateGroupInviteRequest | undefined> {
  const paths = updateMask?.paths ?? [];
  const isNamed = paths.some((path) => EXPIRATION_PATHS.includes(path));
  if (isNamed && !invite?.expirationTime) throw invalid('expiration_time', 'is required, because the mask names it');
  if (!invite?.expirationTime || !(isNamed || paths.length === 0 || paths.includes('*'))) return undefined;
  const expires = timestampMs(invite.expirationTime);
  const before = (await find(db, groupInvites, invite.uid))?.message.expirationTime;
  if (invite.ttl || (before && timestampMs(before) === expires)) return undefined;
  return create(UpdateGroupInviteRequestSchema, {
    groupInvite: { ...clone(GroupInviteSchema, invite), ttl: durationFromMs(expires - now) },
    ...(updateMask && { updateMask: { paths: paths.map((path) => (EXPIRATION_PATHS.includes(path) ? 'ttl' : path)) } }),
  });
}
