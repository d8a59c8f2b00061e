import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { FieldViolation } from '../../../base/errors.ts';
import { parseKeySet, secretKeyProblem, usableKeys } from '../../../base/jwks.ts';
import type { Identity_StaticKeys } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { valueProblem } from './claim-match-rules.ts';

/** The longest lifetime of static keys, which is also the default. */
export const MAX_STATIC_KEYS_LIFETIME_MS = 365 * 24 * 60 * 60 * 1000;

const MAX_KEYS = 20;
const MAX_KEYS_LENGTH = 64 * 1024;
const MAX_AUDIENCES = 20;

/**
 * Returns what is wrong with the static keys of an identity. An expiry that equals that of `existing` is not checked,
 * so that expired keys can be updated in other fields.
 */
export function staticKeysProblems(
  keys: Identity_StaticKeys,
  now: number,
  existing?: Identity_StaticKeys,
): FieldViolation[] {
  const problems: [field: string, problem: string | undefined][] = [
    ['issuer', valueProblem(keys.issuer)],
    ['subject', valueProblem(keys.subject)],
    ['issuer_keys', keysProblem(keys.issuerKeys)],
    ['expiration_time', expiryOf(keys) === expiryOf(existing) ? undefined : expiryProblem(expiryOf(keys), now)],
    ['audiences', keys.audiences.length > MAX_AUDIENCES ? `must have at most ${MAX_AUDIENCES} entries` : undefined],
    ...keys.audiences.map((audience, at): [string, string | undefined] => [`audiences[${at}]`, valueProblem(audience)]),
  ];
  return problems.flatMap(([field, description]) =>
    description === undefined ? [] : [{ field: `static_keys.${field}`, description }],
  );
}

/** Refuses only what can do harm: secrets, which readers would see, and more keys than a login should try. */
function keysProblem(text: string): string | undefined {
  if (text === '') return 'is required';
  if (text.length > MAX_KEYS_LENGTH) return `must have at most ${MAX_KEYS_LENGTH} characters`;
  const keys = parseKeySet(text) ?? [];
  return keys.length > MAX_KEYS ? `must have at most ${MAX_KEYS} keys` : secretKeyProblem(text);
}

/** Whether a token can be verified with one of the keys. */
export const hasUsableKey = ({ issuerKeys }: Identity_StaticKeys): boolean =>
  usableKeys(parseKeySet(issuerKeys) ?? []).length > 0;

/** Returns what a client should know about keys that are stored as given but cannot all be used. */
export function staticKeysWarning({ issuerKeys }: Identity_StaticKeys): string | undefined {
  const keys = parseKeySet(issuerKeys);
  if (!keys) return `static_keys.issuer_keys is not a JSON Web Key Set ({"keys": [...]}); ${NO_LOGIN}`;
  const unused = keys.flatMap((key, at) => (typeof key === 'string' ? [`keys[${at}] ${key}`] : []));
  if (keys.length > unused.length) {
    return unused.length > 0 ? `static_keys.issuer_keys: these keys are not used: ${unused.join('; ')}` : undefined;
  }
  return `static_keys.issuer_keys has no key that can be used; ${[...unused, NO_LOGIN].join('; ')}`;
}

const NO_LOGIN = 'no token can authenticate this identity until it is updated';

const expiryOf = (keys: Identity_StaticKeys | undefined): number | undefined =>
  keys?.expirationTime && timestampMs(keys.expirationTime);

function expiryProblem(expiry: number | undefined, now: number): string | undefined {
  if (expiry === undefined) return undefined;
  if (expiry <= now) return 'must be in the future';
  return expiry > now + MAX_STATIC_KEYS_LIFETIME_MS ? 'must be at most 365 days in the future' : undefined;
}
