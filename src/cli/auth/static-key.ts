import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { duration } from '../../config-values.ts';
import { checked } from '../context.ts';
import { example } from '../help.ts';
import { terminalOf } from '../output/terminal.ts';
import { readObject, writeObject } from '../settings/private-file.ts';

const ALGORITHM = 'EdDSA';

/** For machines without an issuer of their own: a key pair, and tokens signed with it, for an identity with static keys. */
export function addStaticKeys(auth: Command): void {
  addKeygen(auth);
  addSign(auth);
}

function addKeygen(auth: Command): void {
  const command = auth
    .command('keygen <file>')
    .description('make a key pair: the private half goes into the file, the public half is printed as a key set');
  example(
    command,
    'wharf auth keygen ci.key > ci.jwks',
    'wharf iam identities create --parent $ORG --name ci --issuer https://ci.example --subject build --issuer-keys @ci.jwks',
  );
  command.action(async (file: string) => {
    const path = resolve(file);
    if (await exists(path)) throw new Error(`${file} exists already: choose another name, or delete it`);
    const { exportJWK, generateKeyPair } = await import('jose');
    const { privateKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
    const { d, ...half } = { ...(await exportJWK(privateKey)), alg: ALGORITHM, use: 'sig' };
    await writeObject(path, { ...half, d });
    terminalOf(command).out(`${JSON.stringify({ keys: [half] })}\n`);
  });
}

interface SignFlags {
  readonly key: string;
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
  readonly lifetime: number;
}

function addSign(auth: Command): void {
  const command = auth
    .command('sign')
    .description('print a token signed with a key of keygen, for an identity that has its public half')
    .requiredOption('--key <file>', 'the private half')
    .requiredOption('--issuer <text>', 'the issuer that the identity expects')
    .requiredOption('--subject <text>', 'the subject that the identity expects')
    .requiredOption(
      '--audience <text>',
      'whom the token is for: the URL of the server, unless the identity says otherwise',
    )
    .addOption(
      new Option('--lifetime <time>', 'how long it is good for, up to 24h')
        .default(600_000, '10m')
        .argParser(checked(duration('1s', '24h'))),
    );
  example(
    command,
    'wharf auth sign --key ci.key --issuer https://ci.example --subject build --audience http://127.0.0.1:8080',
  );
  command.action(async ({ key, issuer, subject, audience, lifetime }: SignFlags) => {
    const jwk = await readObject(resolve(key));
    if (!jwk) throw new Error(`there is no ${key}: make one with 'wharf auth keygen ${key}'`);
    const { importJWK, SignJWT } = await import('jose');
    const now = Math.floor(systemClock() / 1000);
    const token = await new SignJWT()
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setIssuer(issuer)
      .setSubject(subject)
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + Math.ceil(lifetime / 1000))
      .sign(await importJWK(jwk, ALGORITHM));
    terminalOf(command).out(`${token}\n`);
  });
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
