import type { TokenScope } from '../../access/token-scope.ts';
import { denied, type FieldViolation } from '../../base/errors.ts';
import { isUid, isWithin } from '../../base/uid.ts';
import {
  allCapabilities,
  capabilityNamed,
  covers,
  listOf,
  nameOf,
  setOf,
  without,
} from '../../contract/capabilities.ts';
import type {
  ExchangeRefreshTokenRequest,
  ExchangeRequest,
} from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { refuse } from '../../resource/validate.ts';

/** What somebody wants a token to be good for. */
export interface Wish extends TokenScope {
  readonly audiences: readonly string[];
}

// Together they keep a token below the length that others take in a header.
const MAX_AUDIENCES = 10;
const MAX_SCOPES = 20;
const AUDIENCE = /^[^\s\p{Cc}]{1,255}$/u;

/** Reads the wish out of a request, or throws INVALID_ARGUMENT naming what is wrong with it. */
export function readWish(request: ExchangeRequest | ExchangeRefreshTokenRequest): Wish {
  const audiences = [...new Set(request.aud)];
  const scopes = [...new Set([request.scope, ...request.scopes].filter((scope) => scope !== ''))];
  const found = request.cap.map(capabilityNamed);
  const capabilities = found.filter((capability) => capability !== undefined);

  const violations: FieldViolation[] = [];
  const expect = (field: string, right: boolean, description: string) => {
    if (!right) violations.push({ field, description });
  };
  expect('aud', audiences.length > 0, 'is required: say whom the token is meant for');
  expect('aud', audiences.length <= MAX_AUDIENCES, `must be at most ${MAX_AUDIENCES}`);
  expect('aud', audiences.every(isAudience), 'must have 1 to 255 characters each, without spaces');
  expect('scopes', scopes.length <= MAX_SCOPES, `must be at most ${MAX_SCOPES}`);
  expect('scopes', scopes.every(isUid), 'must be uids: 40 hex digits, then /-separated parts of 16');
  expect('cap', request.cap.length <= allCapabilities.length, `must be at most ${allCapabilities.length}`);
  const unknown = request.cap.find((_, at) => found[at] === undefined);
  expect('cap', unknown === undefined, `there is no capability ${JSON.stringify(unknown?.slice(0, 100))}`);
  refuse(violations);

  return {
    audiences,
    scopes: scopes.length > 0 ? scopes : undefined,
    capabilities: capabilities.length > 0 ? setOf(capabilities) : undefined,
  };
}

const isAudience = (text: string): boolean => AUDIENCE.test(text);

/** What is left of `held` under a wish. Throws PERMISSION_DENIED where the wish goes beyond what is held. */
export function narrowed(held: TokenScope, wish: TokenScope): TokenScope {
  const outside = wish.scopes?.find((scope) => held.scopes?.every((outer) => !isWithin(scope, outer)) ?? false);
  if (outside !== undefined)
    throw denied(`the token that was sent is not good at ${outside}, so neither is one for it`);
  const { capabilities: asked } = wish;
  const { capabilities: limit } = held;
  if (asked !== undefined && limit !== undefined && !covers(limit, asked)) {
    const names = listOf(without(asked, limit)).map(nameOf).join(', ');
    throw denied(`the token that was sent is not good for ${names}, so neither is one for it`);
  }
  return { scopes: wish.scopes ?? held.scopes, capabilities: asked ?? limit };
}
