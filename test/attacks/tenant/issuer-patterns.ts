import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { cpuMsSince } from '../../../src/base/cpu-time.testing.ts';
import { Code } from '../../../src/base/errors.ts';
import { newUid, type Uid } from '../../../src/base/uid.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  IdentitiesService,
  IdentitySchema,
} from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities } from '../../../src/domains/iam/identities/identities.ts';
import { insert } from '../../../src/resource/write.ts';
import { openStore } from '../../../src/store/open.ts';
import { databases } from '../../support/databases.ts';
import { newKey, sign } from '../../support/issuer.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import {
  type ClaimMatch,
  exactMatch,
  newFederatedIdentity,
  newTenant,
  startSharedIssuer,
  subjectPattern,
} from '../../support/tenants.ts';
import { type Client, wires } from '../../support/wires.ts';

const { getGroup } = GroupsService.method;
const { createIdentity } = IdentitiesService.method;
const QUOTA = 500;
/** A match with one of these takes some 10 ms. */
const COSTLY = '(?:.*a){150}';

for (const database of databases) {
  describe(`issuer patterns on ${database.name}`, () => {
    let server: TestServer;
    let api: Client;
    before(async () => {
      server = await startTestServer(database, { env: { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' } });
      api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    });
    after(() => server.remove());

    /** Inserts identities directly into the database, because the API takes longer. */
    async function insertIdentities(parent: string, count: number, match: (at: number) => ClaimMatch): Promise<void> {
      const store = await openStore(server.dataLocation);
      await store.write(async (tx) => {
        for (let at = 0; at < count; at++) {
          const relationship = { case: 'claimMatch', value: match(at) } as const;
          const message = create(IdentitySchema, { name: `costly ${at}`, relationship });
          await insert(tx, identities, { message, uid: newUid(parent as Uid), parent: parent as Uid }, Date.now());
        }
      });
      await store.close();
    }

    /** Processor time of the median of a few requests. The first ones may compile patterns or fetch keys. */
    async function costOf(request: (at: number) => Promise<unknown>): Promise<number> {
      const costs: number[] = [];
      for (let at = 0; at < 7; at++) {
        const start = process.cpuUsage();
        await request(at);
        costs.push(cpuMsSince(start));
      }
      return costs.sort((a, b) => a - b)[3] ?? 0;
    }

    for (const wire of wires) {
      test(`patterns whose wildcards choose the host are refused over ${wire.name}`, async () => {
        const client = wire.connect(server.url, server.token);
        for (const pattern of ['https://.*example\\.com.*', 'https://[^/]+/x', 'https://.*', 'https://[a-z]+\\.com']) {
          const iss = { case: 'issuerPattern', value: pattern } as const;
          const value = { ...exactMatch('', 'x'), iss };
          const identity = { name: 'broad', relationship: { case: 'claimMatch', value } } as const;
          const refused = client.call(createIdentity, { parent: server.organization, identity });
          const error = await rejects(refused, Code.INVALID_ARGUMENT);
          assert.deepEqual(error.fields, ['claim_match.issuer_pattern']);
          assert.match(error.message, /literal host/);
        }
        client.close();
      });
    }

    test('a junk token does not pay for the patterns of other hosts, nor for many of its own', async () => {
      const tenant = await newTenant(api);
      await insertIdentities(tenant.uid, 100, (at) => ({
        ...exactMatch('', 'x'),
        iss: { case: 'issuerPattern', value: `https://costly\\.example\\.com/${COSTLY}${at}` },
      }));
      const key = newKey('junk');
      const exp = Math.floor(Date.now() / 1000) + 600;
      const send = async (iss: string) =>
        rejects(
          api.call(
            getGroup,
            { uid: tenant.uid },
            { token: await sign({ iss, sub: 'x', aud: server.url, exp, jti: String(Math.random()) }, key) },
          ),
          Code.UNAUTHENTICATED,
        );
      const path = 'a'.repeat(450);
      const plain = await costOf(() => send(`https://unknown.example.com/${path}`));
      const [otherHost, ownHost] = [
        await costOf(() => send(`https://other.example.org/${path}`)),
        await costOf(() => send(`https://costly.example.com/${path}`)),
      ];
      assert.ok(otherHost < plain + 30, `${otherHost} ms, and ${plain} ms without any pattern`);
      assert.ok(ownHost < plain + 150, `${ownHost} ms, and ${plain} ms without any pattern`);
    });

    test('costly patterns for the subjects of a shared issuer do not slow down or break the logins of others', async (t) => {
      const [victim, attacker] = [await newTenant(api), await newTenant(api)];
      const issuer = await startSharedIssuer(t);
      await insertIdentities(attacker.uid, 100, (at) => subjectPattern(issuer.url, `${COSTLY}${at}`));
      await newFederatedIdentity(api, victim.uid, subjectPattern(issuer.url, 'victim:.*'));
      const subject = `victim:${'a'.repeat(900)}`;
      const cost = await costOf(async (at) => {
        const token = await issuer.token(server, subject, { jti: String(at) });
        await api.call(getGroup, { uid: victim.uid }, { token });
      });
      assert.ok(cost < 200, `${cost} ms`);
    });

    test('an organization can have a limited number of identities with patterns', async () => {
      const [tenant, other] = [await newTenant(api), await newTenant(api)];
      const match = (at: number) => subjectPattern('https://issuer.example.com', `repo:${at}/.*`);
      await insertIdentities(tenant.uid, QUOTA, match);
      const make = (parent: string, value: ClaimMatch) =>
        api.call(createIdentity, { parent, identity: { name: 'more', relationship: { case: 'claimMatch', value } } });
      const error = await rejects(make(tenant.uid, match(QUOTA)), Code.RESOURCE_EXHAUSTED);
      assert.match(error.message, /at most 500 identities with patterns/);
      await make(tenant.uid, exactMatch('https://issuer.example.com', 'exact'));
      await make(other.uid, match(0));
      await insertIdentities(tenant.uid, 199, () => exactMatch('https://issuer.example.com', 'exact'));
      await rejects(make(tenant.uid, exactMatch('https://issuer.example.com', 'exact')), Code.RESOURCE_EXHAUSTED);
    });
  });
}
