import { create } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { denied, invalid, notFound } from '../../base/errors.ts';
import { isUid, parentOf, ROOT } from '../../base/uid.ts';
import { Auth, type DeletionRequest } from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { deleteTree } from '../../resource/delete.ts';
import type { Operation, Operations } from '../../resource/operation.ts';
import { bearerToken, type Tokens } from '../tokens/access-tokens.ts';
import { type RegistrationOptions, registration } from './registration.ts';
import { whoAmI } from './who-am-i.ts';

export interface AuthOptions extends RegistrationOptions {
  readonly tokens: Tokens;
}

/** Who somebody is, and how people come and go. Headless logins are not available yet. */
export const authOperations = ({ tokens, verifyStranger }: AuthOptions): Operations => ({
  [`${Auth.typeName}/${Auth.method.validate.name}`]: whoAmI(tokens),
  [`${Auth.typeName}/${Auth.method.register.name}`]: registration({ tokens, verifyStranger }),
  [`${Auth.typeName}/${Auth.method.delete.name}`]: deletion(tokens),
});

/** The way out, for people alone: whoever belongs to a group is deleted by those who manage it. */
const deletion = (tokens: Pick<Tokens, 'verify'>): Operation => ({
  mode: 'write',

  /** There is no capability to check, so a token that was narrowed to a few must not do it. */
  async prepare({ authorization }) {
    const own = await tokens.verify(bearerToken(authorization));
    if (own?.scopes || own?.capabilities !== undefined) {
      throw denied('a token that was narrowed cannot delete its identity; use one that was not');
    }
  },

  async run(ctx, request) {
    const { id } = request as DeletionRequest;
    if (!isUid(id)) throw invalid('id', 'must be the uid of the calling identity');
    if (id !== ctx.caller.uid || parentOf(id) !== ROOT) {
      throw denied('only the own identity of a person can be deleted here; DeleteIdentity deletes others');
    }
    // Its bindings go along, as with every identity.
    const kinds = new Map([[identities.kind, identities]]);
    if (!(await deleteTree(ctx, kinds, identities, id))) throw notFound(identities.kind, id);
    return create(EmptySchema);
  },
});
