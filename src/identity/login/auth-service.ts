import { create } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { denied, invalid, notFound } from '../../base/errors.ts';
import { isUid, parentOf, ROOT } from '../../base/uid.ts';
import { Auth } from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { deleteTree } from '../../resource/delete.ts';
import { type Operations, writeOperation } from '../../resource/operation.ts';
import { type RegistrationOptions, registerOperation } from './registration.ts';
import { validateOperation } from './who-am-i.ts';

/** Implements the service `Auth` without headless logins, which are not available yet. */
export const authOperations = (options: RegistrationOptions): Operations => ({
  ...validateOperation(options.accessTokens),
  ...registerOperation(options),
  ...deleteOperation,
});

/** Lets users delete their own identity. An identity that belongs to a group is deleted by DeleteIdentity. */
const deleteOperation = writeOperation(Auth.method.delete, {
  async run(ctx, { id }) {
    if (!isUid(id)) throw invalid('id', 'must be the uid of the calling identity');
    if (id !== ctx.caller.uid || parentOf(id) !== ROOT) {
      throw denied('users can delete only their own identity here; use DeleteIdentity for other identities');
    }
    // Also deletes the role bindings of the identity.
    const kinds = new Map([[identities.kind, identities]]);
    if (!(await deleteTree(ctx, kinds, identities, id))) throw notFound(identities.kind, id);
    return create(EmptySchema);
  },
});
