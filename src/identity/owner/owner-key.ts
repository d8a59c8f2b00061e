import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { JWK } from 'jose';
import { SignJWT } from 'jose/jwt/sign';
import { exportJWK } from 'jose/key/export';
import { generateKeyPair } from 'jose/key/generate/keypair';
import { importJWK } from 'jose/key/import';
import { type Clock, systemClock } from '../../base/clock.ts';
import { newUid, ROOT, type Uid } from '../../base/uid.ts';
import { Identity_StaticKeysSchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';

/** The first owner, as stored in the data directory. Read access to the file gives the rights of the owner. */
export interface Owner {
  readonly identity: Uid;
  readonly organization: Uid;
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
  /** The Ed25519 private key. */
  readonly key: JWK;
}

const ALGORITHM = 'EdDSA';
const MAX_LIFETIME_S = 24 * 60 * 60;

const ownerFileIn = (dataDir: string): string => join(dataDir, 'owner.json');

export async function newOwner(): Promise<Owner> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
  const organization = newUid(ROOT);
  return {
    identity: newUid(ROOT),
    organization,
    // URNs, because the keys of this issuer are never fetched, and so that the owner stays valid when the URL changes.
    issuer: `urn:wharfinger:${organization}`,
    subject: 'owner',
    audience: `urn:wharfinger:${organization}`,
    key: { ...(await exportJWK(privateKey)), alg: ALGORITHM, kid: 'owner' },
  };
}

/** How the identity of the owner logs in: with its public key, which does not expire. */
export function relationshipOf({ issuer, subject, audience, key }: Owner) {
  const { d: _private, ...publicKey } = key;
  const issuerKeys = JSON.stringify({ keys: [publicKey] });
  const value = create(Identity_StaticKeysSchema, { issuer, subject, issuerKeys, audiences: [audience] });
  return { case: 'staticKeys' as const, value };
}

/** Reads the owner file. Returns undefined if it does not exist, and throws an error that says how to repair it. */
export async function readOwner(dataDir: string): Promise<Owner | undefined> {
  const path = ownerFileIn(dataDir);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${path}: ${(error as Error).message}`);
  }
  const owner = parseOwner(text);
  if (owner) return owner;
  throw new Error(
    `${path} is damaged: restore it from a backup, or run 'wharf owner recover --new-key', which replaces it`,
  );
}

const FIELDS = ['identity', 'organization', 'issuer', 'subject', 'audience'] as const;

function parseOwner(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text) as Owner;
    const isComplete = FIELDS.every((field) => typeof owner[field] === 'string') && typeof owner.key?.d === 'string';
    return isComplete ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Says that a data directory has no owner file, and how to get one. */
export const missingOwner = (dataDir: string): string =>
  existsSync(join(dataDir, 'database-id'))
    ? `${ownerFileIn(dataDir)} is missing: run 'wharf owner recover --data ${dataDir}', which writes a new one`
    : `no owner in ${dataDir}: start the server once with this data directory, or give that of the server with --data`;

/** Writes the file durably and atomically, because an owner whose key is lost has no access. */
export async function saveOwner(dataDir: string, owner: Owner): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = `${ownerFileIn(dataDir)}.new`;
  // A file that exists may be a link, which opening for writing would follow.
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(owner, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, ownerFileIn(dataDir));
}

export const deleteOwnerFile = (dataDir: string): Promise<void> => rm(ownerFileIn(dataDir), { force: true });

export interface OwnerTokenOptions {
  readonly lifetimeSeconds?: number;
  readonly clock?: Clock;
}

/** Issues a bearer token for the owner with the key in the data directory. The server need not run. */
export async function mintOwnerToken(dataDir: string, options: OwnerTokenOptions = {}): Promise<string> {
  const owner = await readOwner(dataDir);
  if (!owner) throw new Error(missingOwner(dataDir));
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
