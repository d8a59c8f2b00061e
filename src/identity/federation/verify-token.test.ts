import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { base64url, type JWTPayload, SignJWT } from 'jose';
import { newKey, publicJwk, sign, startIssuer } from '../../../test/support/issuer.ts';
import { startOidcProvider } from '../../../test/support/oidc.ts';
import { silent } from '../../../test/support/server.ts';
import {
  type Identity_ClaimMatchSchema,
  IdentitySchema,
  ServicePrincipal,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { fetchJson } from '../outgoing/fetch-json.ts';
import { createIssuers } from './issuer-keys.ts';
import { createVerifier } from './verify-token.ts';

const US = 'https://wharf.example.com';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const key = newKey('one');
const other = newKey('other');

function newVerifier() {
  const time = { now: Date.now() };
  const clock = () => time.now;
  const issuers = createIssuers({ fetchJson: (url) => fetchJson(url, { allowPrivate: true }), clock, log: silent });
  return { time, verifier: createVerifier({ issuers, clock }) };
}

type ClaimMatch = MessageInitShape<typeof Identity_ClaimMatchSchema>;

const identityFor = (iss: string, match: ClaimMatch = {}) =>
  create(IdentitySchema, {
    relationship: {
      case: 'claimMatch',
      value: { iss: { case: 'issuer', value: iss }, sub: { case: 'subject', value: 'somebody' }, ...match },
    },
  });

/** An issuer, an identity that trusts it, and what becomes of a token with these claims. */
async function setUp(t: TestContext) {
  const issuer = await startIssuer(t, key);
  const { time, verifier } = newVerifier();
  const identity = identityFor(issuer.url);
  const claims = (changes: JWTPayload = {}): JWTPayload => {
    const now = Math.floor(time.now / 1000);
    return { iss: issuer.url, sub: 'somebody', aud: US, iat: now, exp: now + 600, ...changes };
  };
  const judge = (token: string, who = identity) => outcome(verifier.verify(token, who, US));
  return { issuer, time, verifier, identity, claims, judge };
}

/** `ok`, or the refusal in a few words. */
async function outcome(verdict: ReturnType<ReturnType<typeof createVerifier>['verify']>): Promise<string> {
  const { refusal } = await verdict;
  return refusal ? `${refusal.kind}: ${refusal.reason}` : 'ok';
}

const encode = (value: unknown): string => base64url.encode(JSON.stringify(value));

test('tokens of a real provider are accepted, also after it has changed its keys', async (t) => {
  const provider = await startOidcProvider(['ci', 'cd'], { department: 'harbour', groups: ['a', 'b'] });
  t.after(provider.stop);
  const { time, verifier } = newVerifier();
  const subject = { sub: { case: 'subject', value: 'ci' } } as const;
  const ci = identityFor(provider.issuer, {
    ...subject,
    claims: { department: 'harbour' },
    claimPatterns: { groups: 'b|c' },
  });
  const judge = (token: string, identity = ci) => outcome(verifier.verify(token, identity, US));

  const token = await provider.token('ci', US);
  const { claims } = await verifier.verify(token, ci, US);
  assert.equal(claims?.sub, 'ci');
  assert.equal(claims?.aud, US);
  assert.equal(await judge(await provider.token('cd', US)), 'claim: invalid "sub"');
  assert.equal(await judge(await provider.token('ci', 'https://another.example.com')), 'claim: invalid "aud"');
  assert.equal(
    await judge(token, identityFor(provider.issuer, { ...subject, claims: { department: 'sea' } })),
    'claim: invalid "department"',
  );

  provider.rotateKeys();
  time.now += 1;
  assert.equal(await judge(token), 'ok');
  assert.equal(await judge(await provider.token('ci', US)), 'ok');
  // With the new keys at hand, the old one is gone.
  assert.equal(await judge(token), 'token: the token is signed with an unknown key');
});

test('a signature is checked once for each set of keys', async (t) => {
  const { issuer, time, claims, judge } = await setUp(t);
  const { mock } = t.mock.method(crypto.subtle, 'verify');
  const token = await sign(claims({ exp: Math.floor(time.now / 1000) + 7200 }), key);
  for (let i = 0; i < 10; i++) assert.equal(await judge(token), 'ok');
  assert.equal(await judge(token, identityFor(issuer.url, { claims: { a: 'b' } })), 'claim: invalid "a"');
  assert.equal(mock.callCount(), 1);
  time.now += HOUR;
  assert.equal(await judge(token), 'ok');
  assert.equal(mock.callCount(), 2);
});

test('a hot token is checked for its time all the same', async (t) => {
  const { time, claims, judge } = await setUp(t);
  const token = await sign(claims({ exp: Math.floor(time.now / 1000) + 60 }), key);
  assert.equal(await judge(token), 'ok');
  assert.equal(await judge(token), 'ok');
  time.now += 2 * MINUTE;
  assert.equal(await judge(token), 'token: the token has expired; get a new one');
});

test('an expired token makes nobody ask the issuer', async (t) => {
  const { issuer, claims, judge } = await setUp(t);
  await judge(await sign(claims({ exp: 1 }), key));
  assert.deepEqual(issuer.requests, []);
});

test('only the issuer that an identity names is asked', async (t) => {
  const { claims, judge, identity } = await setUp(t);
  const stranger = await startIssuer(t, other);
  const token = await sign(claims({ iss: stranger.url }), other);
  assert.equal(await judge(token, identity), 'claim: invalid "iss"');
  assert.deepEqual(stranger.requests, []);
});

test('a key of another issuer signs nothing here', async (t) => {
  const { claims, judge } = await setUp(t);
  const stranger = await startIssuer(t, { ...other, kid: key.kid });
  // Its own tokens are good, and so are its keys; but not for the tokens of others.
  assert.equal(
    await judge(await sign(claims({ iss: stranger.url }), { ...other, kid: 'one' }), identityFor(stranger.url)),
    'ok',
  );
  assert.equal(
    await judge(await sign(claims(), { ...other, kid: 'one' })),
    'token: the signature of the token is not valid',
  );
  assert.equal(await judge(await sign(claims(), other)), 'token: the token is signed with an unknown key');
});

test('unsigned tokens, shared secrets and other tricks with the header', async (t) => {
  const { issuer, claims, judge } = await setUp(t);
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rsaJwk = { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'rsa' };
  issuer.documents['/keys'] = { keys: [publicJwk(key), rsaJwk] };
  const good = await new SignJWT(claims()).setProtectedHeader({ alg: 'RS256', kid: 'rsa' }).sign(rsa.privateKey);
  assert.equal(await judge(good), 'ok');

  const notAllowed = /^token: the token must be signed with one of RS256, /;
  for (const alg of ['none', 'None', 'NONE', '']) {
    for (const signature of ['', good.split('.')[2]]) {
      const unsigned = `${encode({ alg, kid: 'rsa' })}.${encode(claims())}.${signature}`;
      assert.match(await judge(unsigned), /^token: the token (must be signed|is not a JWT)/, alg);
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
    assert.match(await judge(token), notAllowed);
  }
  // A key that the token brings along counts for nothing.
  const embedded = { jwk: publicJwk(other), jku: `${issuer.url}/keys` } as never;
  assert.match(
    await judge(await sign(claims(), { ...other, kid: 'one' }, embedded)),
    /signature of the token is not valid/,
  );
  // A known key with an algorithm that is not its own.
  const [, payload, signature] = good.split('.');
  assert.match(
    await judge(`${encode({ alg: 'PS256', kid: 'rsa' })}.${payload}.${signature}`),
    /signature of the token/,
  );
  assert.match(await judge(`${encode({ alg: 'ES256', kid: 'rsa' })}.${payload}.${signature}`), /unknown key/);
  const critical = await sign(claims(), key, { crit: ['b64'], b64: true });
  assert.match(await judge(critical), /critical extensions/);
});

test('what is no token is refused without asking anybody', async (t) => {
  const { issuer, claims, judge } = await setUp(t);
  assert.equal(await judge('token'), 'token: the token is not a JWT');
  assert.match(await judge(await sign(claims({ long: 'x'.repeat(16_384) }), key)), /longer than 16384 characters/);
  assert.deepEqual(issuer.requests, []);
});

test('an altered token is refused, also when the original is well known', async (t) => {
  const { claims, judge } = await setUp(t);
  const good = await sign(claims({ role: 'user' }), key);
  assert.equal(await judge(good), 'ok');
  const [header, , signature] = good.split('.');
  const altered = `${header}.${encode(claims({ role: 'admin' }))}.${signature}`;
  assert.equal(await judge(altered), 'token: the signature of the token is not valid');
});

test('an unknown key id makes the issuer be asked once a minute', async (t) => {
  const { issuer, time, claims, judge } = await setUp(t);
  const asked = () => issuer.requests.filter((path) => path === '/keys').length;
  const unknown = await sign(claims(), other);
  await judge(await sign(claims(), key));
  time.now += 1;
  for (let i = 0; i < 5; i++) assert.match(await judge(unknown), /unknown key/);
  assert.equal(asked(), 2);
  issuer.publish(key, other);
  time.now += MINUTE;
  assert.equal(await judge(unknown), 'ok');
  assert.equal(asked(), 3);
});

test('a withdrawn key is gone with the hour, also for a token that is used all the time', async (t) => {
  const { issuer, time, claims, judge } = await setUp(t);
  const token = await sign(claims({ exp: Math.floor(time.now / 1000) + 7200 }), key);
  issuer.publish(key, other);
  assert.equal(await judge(token), 'ok');
  issuer.publish(other);
  time.now += HOUR - 1;
  assert.equal(await judge(token), 'ok');
  time.now += 1;
  assert.equal(await judge(token), 'token: the token is signed with an unknown key');
});

test('a token without key id is tried with every key that fits', async (t) => {
  const { issuer, claims, judge } = await setUp(t);
  issuer.publish(other, newKey('another'), key);
  assert.equal(await judge(await sign(claims(), key, { kid: undefined as never })), 'ok');
});

test('an issuer that cannot be asked is told from a token that is wrong', async (t) => {
  const { issuer, claims, judge } = await setUp(t);
  issuer.answer = (_, res) => res.writeHead(302, { location: `${issuer.url}/elsewhere` }).end();
  assert.equal(
    await judge(await sign(claims(), key)),
    `issuer: the keys of ${issuer.url} cannot be fetched: it answered with a redirect, which is not followed`,
  );
  assert.equal(issuer.requests.length, 1);
});

test('whether a claim matches is told to holders of a genuine token only', async (t) => {
  const { claims, judge } = await setUp(t);
  assert.equal(await judge(await sign(claims({ sub: 'nobody' }), key)), 'claim: invalid "sub"');
  const forged = await sign(claims({ sub: 'nobody' }), { ...other, kid: 'one' });
  assert.equal(await judge(forged), 'token: the signature of the token is not valid');
});

test('a hostile subject pattern costs no time', async (t) => {
  const { issuer, claims, judge } = await setUp(t);
  const identity = identityFor(issuer.url, { sub: { case: 'subjectPattern', value: '(a+)+$' } });
  const token = await sign(claims({ sub: `${'a'.repeat(1000)}!` }), key);
  await judge(token, identity);
  const start = performance.now();
  assert.equal(await judge(token, identity), 'claim: invalid "sub"');
  assert.ok(performance.now() - start < 100);
});

test('fixed keys need no issuer', async () => {
  const { time, verifier } = newVerifier();
  const expiry = time.now + HOUR;
  const staticKeys = {
    issuer: 'urn:cluster',
    subject: 'somebody',
    issuerKeys: JSON.stringify({ keys: [publicJwk(key)] }),
    expirationTime: timestampFromMs(expiry),
  };
  const identity = (changes = {}) =>
    create(IdentitySchema, { relationship: { case: 'staticKeys', value: { ...staticKeys, ...changes } } });
  const exp = Math.floor(time.now / 1000) + 7200;
  const claims = { iss: 'urn:cluster', sub: 'somebody', aud: US, exp };
  const judge = async (changes: JWTPayload, who = identity(), signer = key) =>
    outcome(verifier.verify(await sign({ ...claims, ...changes }, signer), who, US));

  assert.equal(await judge({}), 'ok');
  assert.equal(await judge({ iss: 'urn:another' }), 'claim: invalid "iss"');
  assert.equal(await judge({ sub: 'nobody' }), 'claim: invalid "sub"');
  assert.equal(await judge({ aud: 'another' }), 'claim: invalid "aud"');
  assert.equal(await judge({}, identity({ audiences: ['sts'] })), 'claim: invalid "aud"');
  assert.equal(await judge({ aud: ['sts'] }, identity({ audiences: ['a', 'sts'] })), 'ok');
  assert.equal(await judge({}, identity(), other), 'token: the token is signed with an unknown key');
  assert.equal(await judge({ exp: 1 }), 'token: the token has expired; get a new one');
  // The very token that was good a moment ago is not, once the identity has other keys.
  assert.equal(
    await judge({}, identity({ issuerKeys: JSON.stringify({ keys: [publicJwk(other)] }) })),
    'token: the token is signed with an unknown key',
  );
  assert.equal(await judge({}, identity({ issuerKeys: 'nonsense' })), 'token: the token is signed with an unknown key');
  time.now = expiry;
  assert.equal(await judge({}), 'identity: the keys of this identity have expired');
});

test('identities that nobody can log in as say so', async () => {
  const { time, verifier } = newVerifier();
  const token = await sign({ exp: time.now }, key);
  const judge = (relationship: MessageInitShape<typeof IdentitySchema>['relationship']) =>
    outcome(verifier.verify(token, create(IdentitySchema, relationship ? { relationship } : {}), US));
  const aws = { case: 'awsIdentity', value: { awsAccount: '123456789012' } } as const;
  const principal = { case: 'servicePrincipal', value: ServicePrincipal.INGESTER } as const;
  assert.match(await judge(aws), /^identity: this is an AWS identity, .* not possible yet$/);
  assert.match(await judge(principal), /^identity: this is a service principal, .* not possible yet$/);
  assert.match(await judge(undefined), /^identity: this identity does not say how it is proven$/);
});

test('a token can be verified against its issuer alone', async (t) => {
  const { issuer, claims, verifier } = await setUp(t);
  const token = await sign(claims({ aud: 'a client' }), key);
  assert.equal((await verifier.verifyIssued(token, issuer.url)).claims?.aud, 'a client');
  assert.equal(await outcome(verifier.verifyIssued(token, 'https://another.example.com')), 'claim: invalid "iss"');
  const forged = await sign(claims(), { ...other, kid: 'one' });
  assert.equal(
    await outcome(verifier.verifyIssued(forged, issuer.url)),
    'token: the signature of the token is not valid',
  );
  assert.match(await outcome(verifier.verifyIssued('x', issuer.url)), /not a JWT/);
});

test('what a token claims can be read before it is verified', async (t) => {
  const { issuer, claims, verifier } = await setUp(t);
  assert.equal(verifier.unverifiedClaims(await sign(claims(), other)).claims?.iss, issuer.url);
  assert.match(verifier.unverifiedClaims('x').refusal?.reason ?? '', /not a JWT/);
  assert.deepEqual(issuer.requests, []);
});
