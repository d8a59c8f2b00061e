import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';

export interface Delivered {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Expectations {
  /** The secret of the subscription, as far as it is known. */
  readonly secret: string | undefined;
  /** The public keys of the server. */
  readonly keys: () => Promise<JSONWebKeySet>;
  readonly now: number;
}

const TOLERANCE_S = 5 * 60;

/** What is wrong with a delivery; nothing when all of it is as it should be. */
export async function problemsOf(delivered: Delivered, { secret, keys, now }: Expectations): Promise<string[]> {
  const found = [
    secret === undefined ? undefined : signatureProblem(delivered, secret, now),
    await tokenProblem(delivered, await keys(), now),
  ];
  return found.filter((problem) => problem !== undefined);
}

/** By Standard Webhooks: one of the signatures must be that of the secret. */
function signatureProblem({ headers, body }: Delivered, secret: string, now: number): string | undefined {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`]),
  );
  if (!(Math.abs(Number(timestamp) - now / 1000) <= TOLERANCE_S)) return 'its webhook-timestamp is not of now';
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const wanted = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const isOurs = (signatures ?? '').split(' ').some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ''), 'base64');
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  });
  return isOurs ? undefined : 'its webhook-signature is not of this secret';
}

async function tokenProblem(
  { headers, body }: Delivered,
  keys: JSONWebKeySet,
  now: number,
): Promise<string | undefined> {
  const token = headers.authorization?.replace(/^Bearer /i, '') ?? '';
  const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
      audience: 'customer',
      requiredClaims: ['iss', 'sub', 'exp'],
      currentDate: new Date(now),
    });
    const { webhook } = payload as { webhook?: { digest?: string } };
    return webhook?.digest === digest ? undefined : 'its token is for another body';
  } catch (error) {
    if (error instanceof errors.JOSEError) return `its token is not good: ${error.message}`;
    throw error;
  }
}
