/** Where objects are: a bucket at an endpoint, and a prefix of their keys. */
export interface S3Location {
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  readonly region: string;
  /** The URL of the server, without a path. */
  readonly endpoint: URL;
  /** Whether the bucket is the first segment of the path, and not the first label of the host. */
  readonly isPathStyle: boolean;
}

const PARAMETERS = ['region', 'endpoint', 'addressing'];
const FORM = 's3://bucket/prefix?region=eu-central-1&endpoint=https://s3.example.com';

/**
 * Parses `s3://bucket/prefix`. The parameters `region`, `endpoint` and `addressing` (path or virtual) override the
 * variables AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL. Throws an error that says what to
 * write.
 */
export function parseS3Location(text: string, env: NodeJS.ProcessEnv = {}): S3Location {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 's3:') throw new Error(`write an S3 location as ${FORM}`);
  if (url.username || url.password) {
    throw new Error('an S3 location has no keys, because process lists show it: set AWS_ACCESS_KEY_ID instead');
  }
  const bucket = url.host;
  if (!/^[a-z0-9][a-z0-9._-]{1,62}$/i.test(bucket)) throw new Error(`write the name of a bucket, as in ${FORM}`);
  const unknown = [...url.searchParams.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    throw new Error(`${unknown} is not a parameter of an S3 location: use ${PARAMETERS.join(', ')}`);
  const parameter = (name: string): string | undefined => url.searchParams.get(name) || undefined;
  const region = parameter('region') ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1');
  const custom = parameter('endpoint') ?? (env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || undefined);
  const addressing = parameter('addressing') ?? (custom === undefined ? 'virtual' : 'path');
  if (addressing !== 'path' && addressing !== 'virtual') throw new Error('addressing must be path or virtual');
  const prefix = decodePath(url.pathname).replace(/^\/+|\/+$/g, '');
  return {
    bucket,
    prefix: prefix && `${prefix}/`,
    region,
    endpoint: parseEndpoint(custom ?? `https://s3.${region}.amazonaws.com`),
    isPathStyle: addressing === 'path',
  };
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new Error('the prefix has a % that does not begin an encoded character: write it as %25');
  }
}

function parseEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isValid = url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.search && !url.username;
  if (!isValid) throw new Error('the endpoint must be a URL without a path, such as https://s3.example.com');
  return url;
}
