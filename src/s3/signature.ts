import { createHash, createHmac } from 'node:crypto';

/** The keys of an S3 account. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Set for temporary keys. */
  readonly sessionToken?: string | undefined;
}

/** What a signature covers. */
export interface SignedRequest {
  readonly method: string;
  /** The path as it is sent: each segment encoded with `encodeUri`. */
  readonly path: string;
  /** Not encoded. */
  readonly query: Readonly<Record<string, string>>;
  /** With lower-case names. Includes `host` and `x-amz-content-sha256`; `x-amz-date` is added. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface SigningScope {
  readonly credentials: Credentials;
  readonly region: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The value of `x-amz-content-sha256` for a body that the signature does not cover. */
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
const SERVICE = 's3';
const ALGORITHM = 'AWS4-HMAC-SHA256';

export const sha256Hex = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

const hmac = (key: string | Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/**
 * Returns the headers of a request with its signature, by AWS Signature Version 4 in the `Authorization` header:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 */
export function signedHeaders(request: SignedRequest, scope: SigningScope): Record<string, string> {
  const { credentials, region, now } = scope;
  const time = `${new Date(now).toISOString().replace(/[-:]/g, '').slice(0, 15)}Z`;
  const day = time.slice(0, 8);
  const headers: Record<string, string> = {
    ...request.headers,
    'x-amz-date': time,
    ...(credentials.sessionToken && { 'x-amz-security-token': credentials.sessionToken }),
  };
  const names = Object.keys(headers).sort();
  const canonicalRequest = [
    request.method,
    request.path,
    encodeQuery(request.query),
    ...names.map((name) => `${name}:${headers[name]?.trim().replace(/ +/g, ' ')}`),
    '',
    names.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n');
  const credentialScope = `${day}/${region}/${SERVICE}/aws4_request`;
  const stringToSign = [ALGORITHM, time, credentialScope, sha256Hex(canonicalRequest)].join('\n');
  const signingKey = [day, region, SERVICE, 'aws4_request'].reduce<string | Buffer>(
    hmac,
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = hmac(signingKey, stringToSign).toString('hex');
  const credential = `Credential=${credentials.accessKeyId}/${credentialScope}`;
  return {
    ...headers,
    authorization: `${ALGORITHM} ${credential},SignedHeaders=${names.join(';')},Signature=${signature}`,
  };
}

/** Encodes every byte except the unreserved characters of RFC 3986, as signatures require. */
export const encodeUri = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** Encodes a key for a path: slashes stay. */
export const encodePath = (key: string): string => key.split('/').map(encodeUri).join('/');

/** Sorted by the encoded names, as signatures require. The query is sent in the same form. */
export const encodeQuery = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => [encodeUri(name), encodeUri(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
