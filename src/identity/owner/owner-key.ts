import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JWK } from 'jose';
import { SignJWT } from 'jose/jwt/sign';
import { exportJWK } from 'jose/key/export';
import { generateKeyPair } from 'jose/key/generate/keypair';
import { importJWK } from 'jose/key/import';
import { type Clock, systemClock } from '../../base/clock.ts';
import { newUid, ROOT } from '../../base/uid.ts';

/** The first owner, as its file in the data directory has it. Whoever reads the file is the owner. */
export interface Owner {
  readonly identity: string;
  readonly organization: string;
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
  /** Ed25519, with its private part. */
  readonly key: JWK;
}

const ALGORITHM = 'EdDSA';
const MAX_LIFETIME_S = 24 * 60 * 60;

const fileIn = (dataDir: string): string => join(dataDir, 'owner.json');

export async function newOwner(): Promise<Owner> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
  const organization = newUid(ROOT);
  return {
    identity: newUid(ROOT),
    organization,
    // Names rather than addresses: nobody ever asks this issuer for its keys, and a moved server keeps its owner.
    issuer: `urn:wharfinger:${organization}`,
    subject: 'owner',
    audience: `urn:wharfinger:${organization}`,
    key: { ...(await exportJWK(privateKey)), alg: ALGORITHM, kid: 'owner' },
  };
}

/** What the server must know to recognise the owner: no private part. */
export function publicKeys({ key: { d: _private, ...rest } }: Owner): string {
  return JSON.stringify({ keys: [rest] });
}

export async function readOwner(dataDir: string): Promise<Owner | undefined> {
  try {
    return JSON.parse(await readFile(fileIn(dataDir), 'utf8')) as Owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${fileIn(dataDir)}: ${(error as Error).message}`);
  }
}

/** Durable before it returns, and never half-written: an owner whose key is lost is locked out. */
export async function saveOwner(dataDir: string, owner: Owner): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = `${fileIn(dataDir)}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(owner, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  // The mode above holds for a new file only.
  await chmod(temporary, 0o600);
  await rename(temporary, fileIn(dataDir));
}

export const forgetOwner = (dataDir: string): Promise<void> => rm(fileIn(dataDir), { force: true });

export interface MintOptions {
  readonly lifetimeSeconds?: number;
  readonly clock?: Clock;
}

/** A bearer token for the owner, signed with the key in the data directory. Needs no server. */
export async function mintOwnerToken(dataDir: string, options: MintOptions = {}): Promise<string> {
  const owner = await readOwner(dataDir);
  if (!owner) throw new Error(`no owner in ${dataDir}: start the server once with this data directory`);
  const { lifetimeSeconds = 3600, clock = systemClock } = options;
  if (!(lifetimeSeconds > 0 && lifetimeSeconds <= MAX_LIFETIME_S)) {
    throw new Error('the lifetime of a token must be between 1s and 24h');
  }
  const now = Math.floor(clock() / 1000);
  return new SignJWT()
    .setProtectedHeader({ alg: ALGORITHM, kid: 'owner', typ: 'JWT' })
    .setIssuer(owner.issuer)
    .setSubject(owner.subject)
    .setAudience(owner.audience)
    .setIssuedAt(now)
    .setExpirationTime(now + Math.ceil(lifetimeSeconds))
    .sign(await importJWK(owner.key, ALGORITHM));
}
