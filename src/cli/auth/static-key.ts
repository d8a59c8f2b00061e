import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { durationParser } from '../../config-values.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { terminalOf } from '../output/terminal.ts';
import { readJsonFile, writeJsonFile } from '../settings/private-file.ts';

const ALGORITHM = 'EdDSA';

/** Adds `keygen` and `sign`, for machines without an OIDC issuer: they use an identity with static keys. */
export function addStaticKeys(auth: Command): void {
  addKeygen(auth);
  addSign(auth);
}

function addKeygen(auth: Command): void {
  const command = auth
    .command('keygen <file>')
    .description('create a key pair: write the private key to the file and print the public key as a JWK set');
  addExamples(
    command,
    'wharf auth keygen ci.key > ci.jwks',
    'wharf iam identities create --parent $ORG --name ci --issuer https://ci.example --subject build --issuer-keys @ci.jwks',
  );
  command.action(async (file: string) => {
    const path = resolve(file);
    if (await exists(path)) throw new Error(`${file} exists already: choose another name, or delete it`);
    const { exportJWK, generateKeyPair } = await import('jose');
    const { privateKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
    const { d, ...publicKey } = { ...(await exportJWK(privateKey)), alg: ALGORITHM, use: 'sig' };
    await writeJsonFile(path, { ...publicKey, d });
    terminalOf(command).out(`${JSON.stringify({ keys: [publicKey] })}\n`);
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
    .description('sign a token with a private key of keygen, for an identity that has the public key')
    .requiredOption('--key <file>', 'the file with the private key')
    .requiredOption('--issuer <text>', 'the issuer that the identity expects')
    .requiredOption('--subject <text>', 'the subject that the identity expects')
    .requiredOption('--audience <text>', 'the audience: the URL of the server, unless the identity has other audiences')
    .addOption(
      new Option('--lifetime <time>', 'the lifetime of the token, at most 24h')
        .default(600_000, '10m')
        .argParser(optionParser(durationParser('1s', '24h'))),
    );
  addExamples(
    command,
    'wharf auth sign --key ci.key --issuer https://ci.example --subject build --audience http://127.0.0.1:8080',
  );
  command.action(async ({ key, issuer, subject, audience, lifetime }: SignFlags) => {
    const jwk = await readJsonFile(resolve(key));
    if (!jwk) throw new Error(`the file ${key} does not exist: create it with 'wharf auth keygen ${key}'`);
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
