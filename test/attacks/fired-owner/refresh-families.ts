import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeJwt } from 'jose';
import { Code } from '../../../src/base/errors.ts';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { callerWithRole } from '../../support/callers.ts';
import { newRegistryToken, registryStatus } from '../../support/people.ts';
import { rejects } from '../../support/rejects.ts';

const { exchange, exchangeRefreshToken } = SecurityTokenService.method;
const { validate } = Auth.method;

const MINUTE = 60_000;
let passed = 0;
const clock = () => Date.now() + passed;

onEveryDatabaseAndWire(
  'a stolen access token or refresh token',
  (fixture) => {
    const aud = () => [fixture.server.url];
    const isValid = async (token: string): Promise<boolean> =>
      (await rejectedWith(fixture.as(token).call(validate))) === undefined;

    /** Logs in as an owner of the organization. */
    async function logIn() {
      passed = 0;
      const { token } = await callerWithRole(fixture.server, 'owner', fixture.org);
      return fixture.as(await token()).call(exchange, { aud: aud() });
    }

    test('an access token gives no refresh token, so an hour does not become thirty days', async () => {
      const { token, refreshToken } = await logIn();
      assert.notEqual(refreshToken, '');
      const exchanged = await fixture.as(token).call(exchange, { aud: aud() });
      assert.equal(exchanged.refreshToken, '');
    });

    test('an access token cannot be exchanged again and again for later ones', async () => {
      let { token } = await logIn();
      const expires = Number(decodeJwt(token).exp) * 1000;
      for (let hop = 0; hop < 3; hop++) {
        passed += 15 * MINUTE;
        token = (await fixture.as(token).call(exchange, { aud: aud() })).token;
      }
      assert.ok(Number(decodeJwt(token).exp) * 1000 <= expires);
      passed += 16 * MINUTE;
      await rejects(fixture.as(token).call(validate), Code.UNAUTHENTICATED);
      await rejects(fixture.as(token).call(exchange, { aud: aud() }), Code.UNAUTHENTICATED);
    });

    test('when a refresh token is used twice, every token of its login ends at once', async () => {
      const { token, refreshToken } = await logIn();
      const bystander = await logIn();
      const exchanged = await fixture.as(token).call(exchange, { aud: aud() });
      const registryToken = await newRegistryToken(fixture.server.url, exchanged.token);
      const pair = await fixture.as(refreshToken).call(exchangeRefreshToken, { aud: aud() });
      const renewed = pair.token?.token ?? assert.fail();
      const all = [token, exchanged.token, renewed];
      for (const each of all) assert.ok(await isValid(each));
      assert.equal(await registryStatus(fixture.server.url, registryToken), 200);

      await rejects(fixture.as(refreshToken).call(exchangeRefreshToken, { aud: aud() }), Code.UNAUTHENTICATED);
      for (const each of all) {
        await rejects(fixture.as(each).call(validate), Code.UNAUTHENTICATED);
        await rejects(fixture.as(each).call(exchange, { aud: aud() }), Code.UNAUTHENTICATED);
      }
      assert.equal(await registryStatus(fixture.server.url, registryToken), 401);
      const next = pair.refreshToken?.token ?? assert.fail();
      await rejects(fixture.as(next).call(exchangeRefreshToken, { aud: aud() }), Code.UNAUTHENTICATED);
      assert.ok(await isValid(bystander.token), 'another login of the organization stays valid');
    });

    test('a recipient of an access token cannot forge a refresh token that ends the login', async () => {
      const { token, refreshToken } = await logIn();
      const { id } = JSON.parse(Buffer.from(refreshToken, 'base64').toString()) as { id: string };
      assert.ok(!JSON.stringify(decodeJwt(token)).includes(id));
    });
  },
  { clock },
);

const rejectedWith = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );
