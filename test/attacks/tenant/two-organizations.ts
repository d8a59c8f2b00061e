import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { createGrantCache } from '../../../src/access/grant-cache.ts';
import { ApiError } from '../../../src/base/errors.ts';
import { newUid, parentOf, ROOT, rootOf, type Uid } from '../../../src/base/uid.ts';
import { IdentitySchema } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { identities } from '../../../src/domains/iam/identities/identities.ts';
import { stableUid } from '../../../src/domains/iam/identities/stable-uid.ts';
import { identityProviders } from '../../../src/domains/iam/identity-providers/identity-providers.ts';
import { OWNER } from '../../../src/domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../../../src/domains/iam/roles/role-bindings.ts';
import { syncBuiltinRoles } from '../../../src/domains/iam/roles/sync-builtin-roles.ts';
import {
  createFederatedAuthenticator,
  createFederatedMatcher,
  type RequestedLogin,
} from '../../../src/identity/federation/federated-login.ts';
import { createIssuerKeys } from '../../../src/identity/federation/issuer-keys.ts';
import { createFederatedTokenVerifier } from '../../../src/identity/federation/verify-token.ts';
import { createAuthenticator } from '../../../src/identity/login/authenticate.ts';
import { insert } from '../../../src/resource/write.ts';
import type { Store, Transaction } from '../../../src/store/store.ts';
import { databases, temporaryStore } from '../../support/databases.ts';
import { newKey, publicJwk, sign } from '../../support/issuer.ts';
import { silentLog } from '../../support/server.ts';
import type { ClaimMatch } from '../../support/tenants.ts';

const SERVER_URL = 'https://wharf.example.com';
const RUNS: Readonly<Record<string, number>> = { SQLite: 1000, PostgreSQL: 40 };

const key = newKey('shared');
const SUBJECTS = ['repo:a/app', 'repo:b/app', 'alice'];
const AUDIENCES = [SERVER_URL, 'client of a', 'client of b'];

/** What an identity of an arrangement requires. The issuer is known only when the arrangement is made. */
interface Draft {
  readonly keys: 'of the issuer' | 'static';
  readonly issuer: 'exact' | 'pattern';
  readonly subject: { readonly case: 'subject' | 'subjectPattern'; readonly value: string };
  readonly audience: string | undefined;
  readonly claims: Readonly<Record<string, string>>;
  readonly created: number;
}

const draft: fc.Arbitrary<Draft> = fc.record({
  keys: fc.constantFrom('of the issuer', 'of the issuer', 'static'),
  issuer: fc.constantFrom('exact', 'exact', 'pattern'),
  subject: fc.oneof(
    fc.record({ case: fc.constant('subject' as const), value: fc.constantFrom(...SUBJECTS) }),
    fc.record({
      case: fc.constant('subjectPattern' as const),
      value: fc.constantFrom('.*', '.+', 'repo:.*', 'repo:a/.*', 'repo:[ab]/app', 'al.*'),
    }),
  ),
  audience: fc.constantFrom(undefined, undefined, ...AUDIENCES),
  claims: fc.constantFrom({}, {}, { team: 'a' }),
  created: fc.integer({ min: 0, max: 9 }),
});

const arrangement = fc.record({
  own: fc.array(draft, { maxLength: 3 }),
  others: fc.array(draft, { minLength: 1, maxLength: 3 }),
  /** Whether the subject of the token is registered as a person, and has a role in the own organization. */
  person: fc.constantFrom(undefined, undefined, 'without role', 'with role'),
  personCreated: fc.integer({ min: 0, max: 9 }),
  providers: fc.array(fc.record({ organization: fc.constantFrom('own', 'other'), client: fc.nat({ max: 1 }) }), {
    maxLength: 2,
  }),
  token: fc.record({
    subject: fc.constantFrom(...SUBJECTS),
    audience: fc.constantFrom(SERVER_URL, SERVER_URL, ...AUDIENCES),
    team: fc.constantFrom('a', 'b'),
  }),
});

/** The parts of a server that decide which identity a token means. The issuer is served from memory. */
function createParts(store: Store) {
  const clock = Date.now;
  const issuerKeys = createIssuerKeys({
    async fetchJson(url) {
      const issuer = url.replace('/.well-known/openid-configuration', '');
      return { json: url === issuer ? { keys: [publicJwk(key)] } : { issuer, jwks_uri: `${issuer}/keys` } } as never;
    },
    clock,
    log: silentLog,
  });
  const verifier = createFederatedTokenVerifier({ issuerKeys, clock, maxLifetimeMs: 3_600_000 });
  const options = { db: store.reader, verifier, publicUrl: SERVER_URL, clock };
  const logIn = createFederatedAuthenticator(options);
  const { authenticate } = createAuthenticator({
    ...{ db: store.reader, clock, publicUrl: SERVER_URL },
    accessTokens: { verify: async () => undefined },
    matchFederated: createFederatedMatcher(options),
    grantCache: createGrantCache(store.reader),
    recordLastSeen() {},
  });
  /** The uid of the identity that something acts as; undefined when it is refused. */
  const uidOf = (work: Promise<string>) =>
    work.catch((error: unknown) => {
      assert.ok(error instanceof ApiError, String(error));
      return undefined;
    });
  return {
    exchange: (token: string, request: RequestedLogin = {}) =>
      uidOf(logIn(token, request).then(({ identity }) => identity)),
    call: (token: string, ...addressed: string[]) =>
      uidOf(
        (async () => {
          const caller = await authenticate(`Bearer ${token}`, '');
          return (await caller.forRequest?.(addressed))?.uid ?? caller.uid;
        })(),
      ),
  };
}

let arranged = 0;

async function insertIdentities(tx: Transaction, organization: Uid, issuer: string, drafts: readonly Draft[]) {
  const uids: string[] = [];
  for (const one of drafts) {
    const uid = newUid(organization);
    const message = create(IdentitySchema, { name: 'x', relationship: relationshipOf(one, issuer) });
    await insert(tx, identities, { message, uid, parent: organization }, one.created);
    uids.push(uid);
  }
  return uids;
}

for (const database of databases) {
  const numRuns = RUNS[database.name] ?? assert.fail();
  test(`no token of one organization acts as an identity of the other in ${numRuns} arrangements on ${database.name}`, async (t) => {
    const store = await temporaryStore(database);
    t.after(() => store.close());
    await syncBuiltinRoles(store, () => 0);
    const parts = createParts(store);

    let [captured, kept] = [0, 0];
    await fc.assert(
      fc.asyncProperty(arrangement, async ({ own, others, person, personCreated, providers, token }) => {
        const issuer = `https://ci.d${++arranged}.example.com`;
        const [ownOrganization, otherOrganization] = [newUid(ROOT), newUid(ROOT)];
        const newToken = () => {
          const now = Math.floor(Date.now() / 1000);
          const { subject: sub, audience: aud, team } = token;
          return sign({ iss: issuer, sub, aud, team, iat: now, exp: now + 600, jti: String(Math.random()) }, key);
        };
        const personUid = stableUid(issuer, token.subject);
        const ownUids = await store.write(async (tx) => {
          if (person) {
            const relationship = relationshipOf({ ...exact(token.subject), created: 0 }, issuer);
            const message = create(IdentitySchema, { name: 'person', relationship });
            await insert(tx, identities, { message, uid: personUid, parent: ROOT }, personCreated);
            // People can log in for as long as an identity provider has their issuer. No token is for this one.
            const configuration = { case: 'oidc', value: { issuer, clientId: 'unused-client' } } as const;
            const provider = create(IdentityProviderSchema, { name: 'p', defaultRole: OWNER.uid, configuration });
            const parent = newUid(ROOT);
            await insert(tx, identityProviders, { message: provider, uid: newUid(parent), parent }, 0);
          }
          if (person === 'with role') {
            const message = newBinding(personUid, OWNER.uid);
            await insert(tx, roleBindings, { message, uid: newUid(ownOrganization), parent: ownOrganization }, 0);
          }
          return insertIdentities(tx, ownOrganization, issuer, own);
        });
        const first = await newToken();
        const before = await parts.call(first, ownOrganization);
        const made: { readonly uid: Uid; readonly parent: Uid }[] = [];
        const otherUids = await store.write(async (tx) => {
          for (const { organization, client } of providers) {
            const parent = organization === 'own' ? ownOrganization : otherOrganization;
            const uid = newUid(parent);
            const configuration = { case: 'oidc', value: { issuer, clientId: AUDIENCES[client + 1] ?? '' } } as const;
            const message = create(IdentityProviderSchema, { name: 'p', defaultRole: OWNER.uid, configuration });
            await insert(tx, identityProviders, { message, uid, parent }, 0);
            made.push({ uid, parent });
          }
          return insertIdentities(tx, otherOrganization, issuer, others);
        });

        // The same for a new token and with the identities of the other organization.
        const second = await newToken();
        const scoped = await parts.call(second, ownOrganization);
        if (before !== undefined) {
          assert.equal(scoped, before, 'identities of another organization change nothing in the addressed one');
          kept++;
        }
        const matching = [];
        for (const [at, identity] of [...ownUids, ...otherUids].entries()) {
          const asRequested = await parts.exchange(second, { identity });
          assert.ok(asRequested === undefined || asRequested === identity);
          if (asRequested) matching.push({ identity, draft: [...own, ...others][at] ?? assert.fail() });
        }
        const isOther = (uid: string | undefined) => uid !== undefined && rootOf(uid) === otherOrganization;
        const isOwn = matching.some(({ identity }) => !isOther(identity));
        const isOwnRestricted = matching.some((match) => !isOther(match.identity) && !acceptsAnySubject(match.draft));
        if (isOwn) assert.ok(!isOther(scoped));
        const unscoped = [await parts.call(second), await parts.exchange(second)];
        if (isOwnRestricted) for (const uid of unscoped) assert.ok(!isOther(uid), 'a request without organization');
        if (isOwn) assert.ok(!isOther(await parts.exchange(second, { scopes: [ownOrganization] })));
        if (matching.some(({ identity }) => isOther(identity))) captured++;
        if (person && token.audience === SERVER_URL) {
          for (const uid of unscoped) assert.equal(uid, personUid, 'a person is never captured, nor refused');
        }

        for (const { uid: identityProvider, parent } of made) {
          for (const identity of [undefined, ...ownUids, ...otherUids]) {
            const uid = await parts.exchange(second, { identityProvider, identity });
            assert.ok(uid === undefined || parentOf(uid) === ROOT || rootOf(uid) === parent, 'through a provider');
          }
        }
      }),
      { numRuns },
    );
    assert.ok(captured > numRuns / 20 && kept > numRuns / 20, `${captured} and ${kept} arrangements mean something`);
  });
}

const exact = (value: string): Omit<Draft, 'created'> => ({
  keys: 'of the issuer',
  issuer: 'exact',
  subject: { case: 'subject', value },
  audience: undefined,
  claims: {},
});

const acceptsAnySubject = ({ keys, subject, claims }: Draft): boolean =>
  keys !== 'static' && (subject.value === '.*' || subject.value === '.+') && Object.keys(claims).length === 0;

function relationshipOf({ keys, issuer: kind, subject, audience, claims }: Draft, issuer: string) {
  if (keys === 'static') {
    const issuerKeys = JSON.stringify({ keys: [publicJwk(key)] });
    const audiences = audience === undefined ? [] : [audience];
    return { case: 'staticKeys' as const, value: { issuer, subject: subject.value, issuerKeys, audiences } };
  }
  const value: ClaimMatch = {
    iss:
      kind === 'exact'
        ? { case: 'issuer', value: issuer }
        : { case: 'issuerPattern', value: issuer.replaceAll('.', '\\.').replace('//ci', '//[a-z]+') },
    sub: subject,
    ...(audience !== undefined && { aud: { case: 'audience', value: audience } }),
    claims,
  };
  return { case: 'claimMatch' as const, value };
}
