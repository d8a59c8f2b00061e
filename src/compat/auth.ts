import { precondition } from '../base/errors.ts';
import { Auth } from '../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { type Operations, readOperation } from '../resource/operation.ts';

/** This server has no login in a browser, so no code has a session. */
export const authOperations: Operations = readOperation(Auth.method.getHeadlessSession, () => {
  throw precondition(
    'NO_BROWSER_LOGIN',
    'headless session',
    'this server has no login in a browser; exchange the token of an issuer that it trusts, or use a static key',
  );
});
