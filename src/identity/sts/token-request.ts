import type { TokenScope } from '../../access/token-scope.ts';
import { denied, type FieldViolation } from '../../base/errors.ts';
import { isUid, isWithin } from '../../base/uid.ts';
import {
  allCapabilities,
  capabilitiesIn,
  capabilityByName,
  capabilityName,
  capabilitySetOf,
  covers,
  withoutCapabilities,
} from '../../contract/capabilities.ts';
import type {
  ExchangeRefreshTokenRequest,
  ExchangeRequest,
} from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { refuse } from '../../resource/validate.ts';

/** The audiences and the token scope that a client requests. */
export interface TokenRequest extends TokenScope {
  readonly audiences: readonly string[];
}

// The limits keep a token short enough for the header limits of other servers.
const MAX_AUDIENCES = 10;
const MAX_SCOPES = 20;
const AUDIENCE = /^[^\s\p{Cc}]{1,255}$/u;

/** Reads the audiences and the token scope of a request. Throws INVALID_ARGUMENT with all violations. */
export function parseTokenRequest(request: ExchangeRequest | ExchangeRefreshTokenRequest): TokenRequest {
  const audiences = [...new Set(request.aud)];
  const requestedScopes = [...new Set([request.scope, ...request.scopes].filter((scope) => scope !== ''))];
  const scopes = requestedScopes.filter(isUid);
  const byName = request.cap.map(capabilityByName);
  const capabilities = byName.filter((capability) => capability !== undefined);

  const violations: FieldViolation[] = [];
  const expect = (field: string, isValid: boolean, description: string) => {
    if (!isValid) violations.push({ field, description });
  };
  expect('aud', audiences.length > 0, 'is required: name the servers that the token is for');
  expect('aud', audiences.length <= MAX_AUDIENCES, `must have at most ${MAX_AUDIENCES} values`);
  expect('aud', audiences.every(isAudience), 'must have 1 to 255 characters each, without spaces');
  expect('scopes', requestedScopes.length <= MAX_SCOPES, `must have at most ${MAX_SCOPES} values`);
  const areUids = scopes.length === requestedScopes.length;
  expect('scopes', areUids, 'must be uids: 40 hex digits, then /-separated parts of 16');
  expect('cap', request.cap.length <= allCapabilities.length, `must have at most ${allCapabilities.length} values`);
  const unknown = request.cap.find((_, at) => byName[at] === undefined);
  expect('cap', unknown === undefined, `there is no capability ${JSON.stringify(unknown?.slice(0, 100))}`);
  refuse(violations);

  return {
    audiences,
    scopes: scopes.length > 0 ? scopes : undefined,
    capabilities: capabilities.length > 0 ? capabilitySetOf(capabilities) : undefined,
  };
}

const isAudience = (text: string): boolean => AUDIENCE.test(text);

/**
 * Restricts the token scope `held` to a requested one. What is not requested stays as it is. Throws PERMISSION_DENIED
 * when the requested scope exceeds `held`.
 */
export function restrictTokenScope(held: TokenScope, requested: TokenScope): TokenScope {
  const outside = requested.scopes?.find((scope) => held.scopes?.every((outer) => !isWithin(scope, outer)) ?? false);
  if (outside !== undefined) {
    throw denied(`your token is restricted to scopes that do not include ${outside}; request a scope within them`);
  }
  const { capabilities: limit } = held;
  const { capabilities = limit } = requested;
  if (capabilities !== undefined && limit !== undefined && !covers(limit, capabilities)) {
    const missing = capabilitiesIn(withoutCapabilities(capabilities, limit)).map(capabilityName).join(', ');
    throw denied(`your token is restricted to capabilities that do not include ${missing}; request fewer capabilities`);
  }
  return { scopes: requested.scopes ?? held.scopes, capabilities };
}
