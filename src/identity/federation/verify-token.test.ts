import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { base64url, type JWTPayload, SignJWT } from 'jose';
import { newKey, publicJwk, sign, startIssuer } from '../../../test/support/issuer.ts';
import { startOidcProvider } from '../../../test/support/oidc.ts';
import { silentLog } from '../../../test/support/server.ts';
import {
  type Identity_ClaimMatchSchema,
  IdentitySchema,
  ServicePrincipal,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { fetchJson } from '../outgoing/fetch-json.ts';
import { createIssuerKeys } from './issuer-keys.ts';
import { createFederatedTokenVerifier, type TokenVerification } from './verify-token.ts';

const SERVER = 'https://wharf.example.com';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const UNKNOWN_KEY = 'token: the token is signed with an unknown key; get a new token';
const INVALID_SIGNATURE = 'token: the signature of the token is not valid; get a new token';

const key = newKey('one');
const other = newKey('other');

function newVerifier() {
  const time = { now: Date.now() };
  const clock = () => time.now;
  const issuers = createIssuerKeys({
    fetchJson: (url) => fetchJson(url, { allowPrivate: true }),
    clock,
    log: silentLog,
  });
  return {
    time,
    verifier: createFederatedTokenVerifier({ issuerKeys: issuers, clock, maxLifetimeMs: 24 * 60 * 60 * 1000 }),
  };
}

type ClaimMatch = MessageInitShape<typeof Identity_ClaimMatchSchema>;

const identityFor = (iss: string, match: ClaimMatch = {}) =>
  create(IdentitySchema, {
    relationship: {
      case: 'claimMatch',
      value: { iss: { case: 'issuer', value: iss }, sub: { case: 'subject', value: 'alice' }, ...match },
    },
  });

/** Starts an issuer, and makes an identity that trusts it. `verify` returns the outcome for a token. */
async function setUp(t: TestContext) {
  const issuer = await startIssuer(t, key);
  const { time, verifier } = newVerifier();
  const identity = identityFor(issuer.url);
  const claims = (changes: JWTPayload = {}): JWTPayload => {
    const now = Math.floor(time.now / 1000);
    return { iss: issuer.url, sub: 'alice', aud: SERVER, iat: now, exp: now + 600, ...changes };
  };
  const verify = (token: string, who = identity) => outcome(verifier.verify(token, who, SERVER));
  return { issuer, time, verifier, identity, claims, verify };
}

/** Returns `ok`, `claim: <name>` for a mismatched claim, or the kind and reason of another rejection. */
async function outcome(verification: Promise<TokenVerification>): Promise<string> {
  const { rejection } = await verification;
  if (!rejection) return 'ok';
  const { kind, claim, reason } = rejection;
  if (kind !== 'claim') return `${kind}: ${reason}`;
  assert.match(reason, new RegExp(`^invalid "${claim}" in the token: `));
  return `claim: ${claim}`;
}

const encode = (value: unknown): string => base64url.encode(JSON.stringify(value));

test('tokens of a real provider are accepted, also after it rotates its keys', async (t) => {
  const provider = await startOidcProvider(['ci', 'cd'], { department: 'harbour', groups: ['a', 'b'] });
  t.after(provider.stop);
  const { time, verifier } = newVerifier();
  const subject = { sub: { case: 'subject', value: 'ci' } } as const;
  const ci = identityFor(provider.issuer, {
    ...subject,
    claims: { department: 'harbour' },
    claimPatterns: { groups: 'b|c' },
  });
  const verify = (token: string, identity = ci) => outcome(verifier.verify(token, identity, SERVER));

  const token = await provider.token('ci', SERVER);
  const { claims } = await verifier.verify(token, ci, SERVER);
  assert.equal(claims?.sub, 'ci');
  assert.equal(claims?.aud, SERVER);
  assert.equal(await verify(await provider.token('cd', SERVER)), 'claim: sub');
  assert.equal(await verify(await provider.token('ci', 'https://another.example.com')), 'claim: aud');
  assert.equal(
    await verify(token, identityFor(provider.issuer, { ...subject, claims: { department: 'sea' } })),
    'claim: department',
  );

  provider.rotateKeys();
  time.now += 1;
  assert.equal(await verify(token), 'ok');
  assert.equal(await verify(await provider.token('ci', SERVER)), 'ok');
  // With the new keys fetched, the old one is not accepted.
  assert.equal(await verify(token), UNKNOWN_KEY);
});

test('a signature is verified once for each key set', async (t) => {
  const { issuer, time, claims, verify } = await setUp(t);
  const { mock } = t.mock.method(crypto.subtle, 'verify');
  const token = await sign(claims({ exp: Math.floor(time.now / 1000) + 7200 }), key);
  for (let i = 0; i < 10; i++) assert.equal(await verify(token), 'ok');
  assert.equal(await verify(token, identityFor(issuer.url, { claims: { a: 'b' } })), 'claim: a');
  assert.equal(mock.callCount(), 1);
  time.now += HOUR;
  assert.equal(await verify(token), 'ok');
  assert.equal(mock.callCount(), 2);
});

test('the validity period of a cached token is checked', async (t) => {
  const { time, claims, verify } = await setUp(t);
  const token = await sign(claims({ exp: Math.floor(time.now / 1000) + 60 }), key);
  assert.equal(await verify(token), 'ok');
  assert.equal(await verify(token), 'ok');
  time.now += 2 * MINUTE;
  assert.equal(await verify(token), 'token: the token has expired; get a new one');
});

test('an expired token causes no request to the issuer', async (t) => {
  const { issuer, claims, verify } = await setUp(t);
  await verify(await sign(claims({ exp: 1 }), key));
  assert.deepEqual(issuer.requests, []);
});

test('only an issuer that the identity names is contacted', async (t) => {
  const { claims, verify, identity } = await setUp(t);
  const otherIssuer = await startIssuer(t, other);
  const token = await sign(claims({ iss: otherIssuer.url }), other);
  assert.equal(await verify(token, identity), 'claim: iss');
  assert.deepEqual(otherIssuer.requests, []);
});

test('a key of another issuer is not accepted', async (t) => {
  const { claims, verify } = await setUp(t);
  const otherIssuer = await startIssuer(t, { ...other, kid: key.kid });
  // Its own tokens are valid, but its keys are not accepted for tokens of another issuer.
  assert.equal(
    await verify(await sign(claims({ iss: otherIssuer.url }), { ...other, kid: 'one' }), identityFor(otherIssuer.url)),
    'ok',
  );
  assert.equal(await verify(await sign(claims(), { ...other, kid: 'one' })), INVALID_SIGNATURE);
  assert.equal(await verify(await sign(claims(), other)), UNKNOWN_KEY);
});

test('unsigned tokens, symmetric algorithms and keys in the header are rejected', async (t) => {
  const { issuer, claims, verify } = await setUp(t);
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rsaJwk = { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'rsa' };
  issuer.documents['/keys'] = { keys: [publicJwk(key), rsaJwk] };
  const good = await new SignJWT(claims()).setProtectedHeader({ alg: 'RS256', kid: 'rsa' }).sign(rsa.privateKey);
  assert.equal(await verify(good), 'ok');

  const notAllowed = /^token: the token must be signed with one of RS256, /;
  for (const alg of ['none', 'None', 'NONE', '']) {
    for (const signature of ['', good.split('.')[2]]) {
      const unsigned = `${encode({ alg, kid: 'rsa' })}.${encode(claims())}.${signature}`;
      assert.match(await verify(unsigned), /^token: the token (must be signed|is not a JWT)/, alg);
    }
  }
  const secrets = [
    rsa.publicKey.export({ type: 'spki', format: 'pem' }),
    rsa.publicKey.export({ type: 'spki', format: 'der' }),
    JSON.stringify(rsaJwk),
  ];
  for (const secret of secrets) {
    const input = `${encode({ alg: 'HS256', kid: 'rsa' })}.${encode(claims())}`;
    const token = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
    assert.match(await verify(token), notAllowed);
  }
  // A key inside the token is ignored.
  const embedded = { jwk: publicJwk(other), jku: `${issuer.url}/keys` } as never;
  assert.match(
    await verify(await sign(claims(), { ...other, kid: 'one' }, embedded)),
    /signature of the token is not valid/,
  );
  // A published key with an algorithm of another key.
  const [, payload, signature] = good.split('.');
  assert.match(
    await verify(`${encode({ alg: 'PS256', kid: 'rsa' })}.${payload}.${signature}`),
    /signature of the token/,
  );
  assert.match(await verify(`${encode({ alg: 'ES256', kid: 'rsa' })}.${payload}.${signature}`), /unknown key/);
  const critical = await sign(claims(), key, { crit: ['b64'], b64: true });
  assert.match(await verify(critical), /critical header extensions/);
});

test('malformed tokens are rejected without a request', async (t) => {
  const { issuer, claims, verify } = await setUp(t);
  assert.equal(await verify('token'), 'token: the token is not a JWT; send a complete JWT');
  assert.match(await verify(await sign(claims({ long: 'x'.repeat(16_384) }), key)), /longer than 16384 characters/);
  assert.deepEqual(issuer.requests, []);
});

test('an altered token is rejected, also when the original is cached', async (t) => {
  const { claims, verify } = await setUp(t);
  const good = await sign(claims({ role: 'user' }), key);
  assert.equal(await verify(good), 'ok');
  const [header, , signature] = good.split('.');
  const altered = `${header}.${encode(claims({ role: 'admin' }))}.${signature}`;
  assert.equal(await verify(altered), INVALID_SIGNATURE);
});

test('unknown key ids cause at most one fetch a minute', async (t) => {
  const { issuer, time, claims, verify } = await setUp(t);
  const fetches = () => issuer.requests.filter((path) => path === '/keys').length;
  const unknown = await sign(claims(), other);
  await verify(await sign(claims(), key));
  time.now += 1;
  for (let i = 0; i < 5; i++) assert.match(await verify(unknown), /unknown key/);
  assert.equal(fetches(), 2);
  issuer.publish(key, other);
  time.now += MINUTE;
  assert.equal(await verify(unknown), 'ok');
  assert.equal(fetches(), 3);
});

test('a withdrawn key is rejected after an hour, also for a cached token', async (t) => {
  const { issuer, time, claims, verify } = await setUp(t);
  const token = await sign(claims({ exp: Math.floor(time.now / 1000) + 7200 }), key);
  issuer.publish(key, other);
  assert.equal(await verify(token), 'ok');
  issuer.publish(other);
  time.now += HOUR - 1;
  assert.equal(await verify(token), 'ok');
  time.now += 1;
  assert.equal(await verify(token), UNKNOWN_KEY);
});

test('a token without key id is verified with every matching key', async (t) => {
  const { issuer, claims, verify } = await setUp(t);
  issuer.publish(other, newKey('another'), key);
  assert.equal(await verify(await sign(claims(), key, { kid: undefined as never })), 'ok');
});

test('an issuer that cannot be reached is a different rejection than an invalid token', async (t) => {
  const { issuer, claims, verify } = await setUp(t);
  issuer.handler = (_, res) => res.writeHead(302, { location: `${issuer.url}/elsewhere` }).end();
  assert.equal(
    await verify(await sign(claims(), key)),
    `issuer: the keys of ${issuer.url} cannot be fetched: it answered with a redirect, which is not followed`,
  );
  assert.equal(issuer.requests.length, 1);
});

test('only holders of an authentic token learn whether a claim matches', async (t) => {
  const { claims, verify } = await setUp(t);
  assert.equal(await verify(await sign(claims({ sub: 'mallory' }), key)), 'claim: sub');
  const forged = await sign(claims({ sub: 'mallory' }), { ...other, kid: 'one' });
  assert.equal(await verify(forged), INVALID_SIGNATURE);
});

test('a malicious subject pattern does not take long', async (t) => {
  const { issuer, claims, verify } = await setUp(t);
  const identity = identityFor(issuer.url, { sub: { case: 'subjectPattern', value: '(a+)+$' } });
  const token = await sign(claims({ sub: `${'a'.repeat(1000)}!` }), key);
  await verify(token, identity);
  const start = performance.now();
  assert.equal(await verify(token, identity), 'claim: sub');
  assert.ok(performance.now() - start < 100);
});

test('static keys need no request to an issuer', async () => {
  const { time, verifier } = newVerifier();
  const expiry = time.now + HOUR;
  const staticKeys = {
    issuer: 'urn:cluster',
    subject: 'alice',
    issuerKeys: JSON.stringify({ keys: [publicJwk(key)] }),
    expirationTime: timestampFromMs(expiry),
  };
  const identity = (changes = {}) =>
    create(IdentitySchema, { relationship: { case: 'staticKeys', value: { ...staticKeys, ...changes } } });
  const exp = Math.floor(time.now / 1000) + 7200;
  const claims = { iss: 'urn:cluster', sub: 'alice', aud: SERVER, exp };
  const verify = async (changes: JWTPayload, who = identity(), signer = key) =>
    outcome(verifier.verify(await sign({ ...claims, ...changes }, signer), who, SERVER));

  assert.equal(await verify({}), 'ok');
  assert.equal(await verify({ iss: 'urn:another' }), 'claim: iss');
  assert.equal(await verify({ sub: 'mallory' }), 'claim: sub');
  assert.equal(await verify({ aud: 'another' }), 'claim: aud');
  assert.equal(await verify({}, identity({ audiences: ['sts'] })), 'claim: aud');
  assert.equal(await verify({ aud: ['sts'] }, identity({ audiences: ['a', 'sts'] })), 'ok');
  assert.equal(await verify({}, identity(), other), UNKNOWN_KEY);
  assert.equal(await verify({ exp: 1 }), 'token: the token has expired; get a new one');
  // A cached token is rejected when the identity has other keys.
  assert.equal(await verify({}, identity({ issuerKeys: JSON.stringify({ keys: [publicJwk(other)] }) })), UNKNOWN_KEY);
  assert.equal(await verify({}, identity({ issuerKeys: 'nonsense' })), UNKNOWN_KEY);
  time.now = expiry;
  assert.equal(await verify({}), 'identity: the static keys of this identity have expired; update the identity');
});

test('identities without a supported login are rejected with a reason', async () => {
  const { time, verifier } = newVerifier();
  const token = await sign({ exp: time.now }, key);
  const verify = (relationship: MessageInitShape<typeof IdentitySchema>['relationship']) =>
    outcome(verifier.verify(token, create(IdentitySchema, relationship ? { relationship } : {}), SERVER));
  const aws = { case: 'awsIdentity', value: { awsAccount: '123456789012' } } as const;
  const principal = { case: 'servicePrincipal', value: ServicePrincipal.INGESTER } as const;
  assert.match(await verify(aws), /^identity: AWS identities cannot log in on this server yet;/);
  assert.match(await verify(principal), /^identity: service principals cannot log in on this server yet;/);
  assert.match(await verify(undefined), /^identity: this identity has no relationship;/);
});

test('a token can be verified without an identity', async (t) => {
  const { issuer, claims, verifier } = await setUp(t);
  const token = await sign(claims({ aud: 'a client' }), key);
  assert.equal((await verifier.verifyIssuedBy(token, issuer.url)).claims?.aud, 'a client');
  assert.equal(await outcome(verifier.verifyIssuedBy(token, 'https://another.example.com')), 'claim: iss');
  const forged = await sign(claims(), { ...other, kid: 'one' });
  assert.equal(await outcome(verifier.verifyIssuedBy(forged, issuer.url)), INVALID_SIGNATURE);
  assert.match(await outcome(verifier.verifyIssuedBy('x', issuer.url)), /not a JWT/);
});

test('claims can be read before the token is verified', async (t) => {
  const { issuer, claims, verifier } = await setUp(t);
  assert.equal(verifier.unverifiedClaims(await sign(claims(), other)).claims?.iss, issuer.url);
  assert.match(verifier.unverifiedClaims('x').rejection?.reason ?? '', /not a JWT/);
  assert.deepEqual(issuer.requests, []);
});
