import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { notFound } from '../../../base/errors.ts';
import {
  type IdentityProviderState,
  IdentityProviderStateSchema,
  IdentityProviderStatesService,
} from '../../../contract/gen/wharfinger/iam/v1/identity_provider_states_pb.js';
import type { State } from '../../../resource/definition.ts';
import { type Operations, readOperation, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { disable, disabledOf, enable } from '../disabled.ts';
import { identityProviders, requireProviderRevocable } from './identity-providers.ts';

const { method } = IdentityProviderStatesService;

/** The methods that disable and enable identity providers. */
export const identityProviderStateOperations: Operations = {
  ...readOperation(method.getIdentityProviderState, async ({ db }, { uid }) => {
    const stored = await find(db, identityProviders, uid);
    if (!stored) throw notFound(identityProviders.kind, uid);
    return toMessage(uid, stored.state);
  }),
  ...writeOperation(method.disableIdentityProvider, {
    run: (ctx, { uid }) => changeState(ctx, uid, (state) => disable(state, { time: ctx.now, by: ctx.caller.uid })),
  }),
  ...writeOperation(method.enableIdentityProvider, {
    run: (ctx, { uid }) => changeState(ctx, uid, enable),
  }),
};

async function changeState(
  ctx: WriteContext,
  uid: string,
  change: (state: State | undefined) => State,
): Promise<IdentityProviderState> {
  const before = await find(ctx.db.forUpdate, identityProviders, uid);
  if (!before) throw notFound(identityProviders.kind, uid);
  await requireProviderRevocable(ctx, before);
  const after = { message: before.message, state: change(before.state) };
  // An update invalidates the cached callers on all servers.
  await update(ctx.db, identityProviders, before, after, ctx.now);
  return toMessage(uid, after.state);
}

function toMessage(uid: string, state: State | undefined): IdentityProviderState {
  const disabled = disabledOf(state);
  return create(IdentityProviderStateSchema, {
    uid,
    disabled: disabled !== undefined,
    ...(disabled && { disableTime: timestampFromMs(disabled.time), disabledBy: disabled.by }),
  });
}
