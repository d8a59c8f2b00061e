/** An error of an S3 server, or of the connection to it. The message says what to do where that is known. */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The code of S3, such as `NoSuchKey`. */
  readonly code: string;

  constructor(status: number, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.code = code;
  }
}

export const isMissing = (error: unknown): boolean =>
  error instanceof S3Error && (error.code === 'NoSuchKey' || error.code === 'NoSuchUpload');

/** Whether a conditional request found another state of the object than it required. */
export const isConditionFailed = (error: unknown): boolean =>
  error instanceof S3Error && (error.status === 412 || error.status === 409);

/** Whether the same request can succeed later. */
export const isTransient = (error: unknown): boolean =>
  error instanceof S3Error && (error.status === 0 || error.status === 429 || error.status >= 500);

export interface FailedRequest {
  readonly method: string;
  readonly bucket: string;
  readonly key: string;
  readonly endpoint: string;
  readonly region: string;
}

/** What to do about the codes that a wrong configuration causes. */
const advice: Readonly<Record<string, (request: FailedRequest) => string>> = {
  NoSuchBucket: ({ bucket, endpoint }) => `the bucket ${bucket} does not exist at ${endpoint}: create it first`,
  InvalidAccessKeyId: () => 'the server does not know the access key: check AWS_ACCESS_KEY_ID',
  SignatureDoesNotMatch: ({ region }) =>
    `the server refused the signature: check AWS_SECRET_ACCESS_KEY and the region (${region})`,
  AuthorizationHeaderMalformed: ({ region }) => wrongRegion(region),
  PermanentRedirect: ({ region }) => wrongRegion(region),
  AuthorizationQueryParametersError: ({ region }) => wrongRegion(region),
  RequestTimeTooSkewed: () => 'the clock of this machine differs too much from that of the server: correct it',
  ExpiredToken: () => 'the temporary keys have expired: get new ones',
  InvalidToken: () => 'the server refused AWS_SESSION_TOKEN: remove it, or get new temporary keys',
  AccessDenied: ({ method, bucket, key }) =>
    `the access key may not ${method} ${bucket}/${key}: ` +
    'allow it s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket, s3:AbortMultipartUpload ' +
    'and s3:ListBucketMultipartUploads for the bucket',
};

const wrongRegion = (region: string): string =>
  `the bucket is not in the region ${region}: add ?region=<its region> to the URL, or set AWS_REGION`;

export function responseError(
  request: FailedRequest,
  status: number,
  { code, message, region }: { readonly code: string; readonly message: string; readonly region?: string | undefined },
): S3Error {
  const known = code || ({ 301: 'PermanentRedirect', 403: 'AccessDenied', 404: 'NoSuchKey' }[status] ?? '');
  const inRegion = region ? ` (its region is ${region})` : '';
  const what = advice[known]?.(request) ?? `${request.method} ${request.bucket}/${request.key} failed`;
  const details = [status, known, message].filter(Boolean).join(' ');
  return new S3Error(status, known, `S3: ${what}${inRegion} [${details}]`);
}

export const connectionError = ({ endpoint }: FailedRequest, cause: unknown): S3Error => {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new S3Error(0, code ?? '', `S3: no response from ${endpoint}: ${message || code}`, { cause });
};
