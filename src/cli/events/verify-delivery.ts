import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';

export interface DeliveryRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface VerifyOptions {
  /** The secret of the subscription, undefined if unknown. */
  readonly secret: string | undefined;
  /** Returns the public keys of the server. */
  readonly keys: () => Promise<JSONWebKeySet>;
  readonly now: number;
}

const TOLERANCE_S = 5 * 60;

/** Verifies a delivery and returns its problems. */
export async function findProblems(delivery: DeliveryRequest, { secret, keys, now }: VerifyOptions): Promise<string[]> {
  const problems = [
    secret === undefined ? undefined : signatureProblem(delivery, secret, now),
    await tokenProblem(delivery, await keys(), now),
  ];
  return problems.filter((problem) => problem !== undefined);
}

/** Standard Webhooks: one of the signatures must match the secret. */
function signatureProblem({ headers, body }: DeliveryRequest, secret: string, now: number): string | undefined {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`]),
  );
  if (!(Math.abs(Number(timestamp) - now / 1000) <= TOLERANCE_S))
    return 'its webhook-timestamp differs from the current time by more than 5 minutes';
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const isValid = (signatures ?? '').split(' ').some((one) => {
    const signature = Buffer.from(one.replace(/^v1,/, ''), 'base64');
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
  return isValid ? undefined : 'its webhook-signature does not match the secret';
}

async function tokenProblem(
  { headers, body }: DeliveryRequest,
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
    return webhook?.digest === digest ? undefined : 'its token was issued for another body';
  } catch (error) {
    if (error instanceof errors.JOSEError) return `its token is invalid: ${error.message}`;
    throw error;
  }
}
