import { gzipSync } from 'node:zlib';
import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { encodeJson } from '../../src/contract/json/encode.ts';
import type { Method } from '../../src/contract/method.ts';
import { type KnownValues, randomMessage } from './messages.ts';
import { mutateBytes, mutateJson, mutateTarget } from './mutate.ts';
import type { Random } from './random.ts';

/** A request that is completely determined, so that a report of a failure shows how to repeat it. */
export type FuzzRequest =
  | {
      readonly kind: 'http';
      readonly verb: string;
      readonly target: string;
      readonly headers: Headers;
      readonly body: Buffer;
    }
  | { readonly kind: 'grpc'; readonly path: string; readonly headers: Headers; readonly body: Buffer }
  | { readonly kind: 'raw'; readonly bytes: Buffer };

type Headers = Readonly<Record<string, string>>;

export interface RequestGeneratorOptions {
  readonly methods: readonly Method[];
  readonly known: KnownValues;
  readonly token: string;
  readonly repository: string;
  readonly digest: string;
}

/** Generates requests: valid ones of every method with some damage, and bytes that are no requests. */
export function createRequestGenerator({ methods, known, token, repository, digest }: RequestGeneratorOptions) {
  function authorization(random: Random): Headers {
    if (random.chance(0.85)) return { authorization: `Bearer ${token}` };
    const damaged = mutateTarget(random, token).slice(0, 4000);
    return random.pick([
      {},
      { authorization: `Bearer ${damaged}` },
      { authorization: 'Basic x' },
      { authorization: '' },
    ]);
  }

  function restRequest(random: Random): FuzzRequest {
    const method = random.pick(methods.filter(({ routes }) => routes.length > 0));
    const route = random.pick(method.routes);
    const { input } = method.desc;
    const json = JSON.parse(encodeSafely(input, randomMessage(random, input, known))) as Record<string, unknown>;
    const path = route.template.replace(/\{([\w.]+)(?:=[^}]*)?\}/g, () => random.pick(known.uids));
    const query = route.body === '*' ? '' : new URLSearchParams(flatten(json)).toString().slice(0, 10_000);
    const resource = route.body === undefined || route.body === '*' ? json : (json[camelCase(route.body)] ?? {});
    const text = JSON.stringify(resource);
    const isDamaged = random.chance(0.5);
    const target = `${path}${query && `?${query}`}`;
    const body = route.body === undefined && random.chance(0.8) ? Buffer.alloc(0) : Buffer.from(text);
    const sent = isDamaged && body.length > 0 ? mutateJson(random, text) : body;
    const isGzip = random.chance(0.05);
    return {
      kind: 'http',
      verb: random.chance(0.05)
        ? random.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'])
        : route.verb,
      target: random.chance(0.2) ? mutateTarget(random, target) : target,
      headers: {
        ...authorization(random),
        'content-type': random.chance(0.05) ? random.pick(CONTENT_TYPES) : 'application/json',
        ...(isGzip && { 'content-encoding': random.pick(['gzip', 'br', 'identity', 'gzip, gzip']) }),
      },
      body: isGzip && random.chance(0.7) ? gzipSync(sent) : sent,
    };
  }

  function grpcRequest(random: Random): FuzzRequest {
    const method = random.pick(methods);
    const { input } = method.desc;
    const valid = Buffer.from(toBinary(input, randomMessage(random, input, known)));
    const message = random.chance(0.4) ? mutateBytes(random, valid) : valid;
    const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), message]);
    frame.writeUInt32BE(message.length, 1);
    const path = `/${method.id}`;
    return {
      kind: 'grpc',
      path: random.chance(0.03) ? mutateTarget(random, path) : path,
      headers: { ...authorization(random), ...(random.chance(0.1) && { 'grpc-timeout': random.pick(TIMEOUTS) }) },
      body: random.chance(0.05) ? mutateBytes(random, frame) : frame,
    };
  }

  function ociRequest(random: Random): FuzzRequest {
    const reference = random.pick(['latest', digest, 'v1', `sha256:${'0'.repeat(64)}`]);
    const base = `/v2/${repository}`;
    const path = random.pick([
      ...[`/v2/`, `/v2/_catalog?n=${random.below(5)}`, `/v2/token?service=x&scope=repository:${repository}:pull,push`],
      ...[`${base}/manifests/${reference}`, `${base}/blobs/${digest}`, `${base}/tags/list?n=${random.below(5)}&last=a`],
      ...[`${base}/referrers/${digest}?artifactType=x`, `${base}/blobs/uploads/`, `${base}/blobs/uploads/x`],
      ...[`${base}/blobs/uploads/?mount=${digest}&from=${repository}`, `${base}/blobs/uploads/?digest=${digest}`],
    ]);
    const descriptor = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size: random.below(1000) };
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: random.pick(MANIFEST_TYPES),
      config: descriptor,
      layers: Array(random.below(5)).fill(descriptor),
      manifests: Array(random.below(2)).fill(descriptor),
      ...(random.chance(0.3) && { subject: descriptor, annotations: { a: 'b' } }),
    });
    return {
      kind: 'http',
      verb: random.pick(['GET', 'GET', 'HEAD', 'PUT', 'POST', 'PATCH', 'DELETE']),
      target: random.chance(0.4) ? mutateTarget(random, path) : path,
      headers: {
        ...authorization(random),
        'content-type': random.pick([...MANIFEST_TYPES, 'application/octet-stream']),
        ...(random.chance(0.1) && { range: random.pick(['bytes=0-1', 'bytes=5-2', 'bytes=-', 'x']) }),
        ...(random.chance(0.1) && { 'content-range': random.pick(['0-1', '5-2', 'x']) }),
      },
      body: random.chance(0.5) ? Buffer.alloc(0) : mutateJson(random, manifest),
    };
  }

  const rawHttp = (random: Random): FuzzRequest => ({
    kind: 'raw',
    bytes: mutateBytes(random, Buffer.from(random.pick(HTTP1_REQUESTS))),
  });

  const rawHttp2 = (random: Random): FuzzRequest => ({
    kind: 'raw',
    bytes: Buffer.concat([HTTP2_PREFACE, ...Array.from({ length: 1 + random.below(6) }, () => http2Frame(random))]),
  });

  return (random: Random): FuzzRequest => {
    const choice = random.below(100);
    if (choice < 40) return restRequest(random);
    if (choice < 75) return grpcRequest(random);
    if (choice < 90) return ociRequest(random);
    return choice < 95 ? rawHttp(random) : rawHttp2(random);
  };
}

const CONTENT_TYPES = ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1', 'x', ''];
const TIMEOUTS = ['1n', '1m', '100S', '0S', 'x', '99999999H', '-1S'];
const MANIFEST_TYPES = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.oci.artifact.manifest.v1+json',
];
const HTTP1_REQUESTS = [
  'GET /iam/v2/groups HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST /sts/exchange HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\na=b&c',
  'POST /auth/v1/register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /ping/v2/ping HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n',
  'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
];
const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** A frame with a valid length and any type, flags, stream and content. */
function http2Frame(random: Random): Buffer {
  const payload = random.bytes(random.pick([0, 0, 4, 5, 6, 8, 12, 40]));
  const head = Buffer.alloc(9);
  head.writeUIntBE(random.chance(0.1) ? random.below(2 ** 24) : payload.length, 0, 3);
  head[3] = random.below(12);
  head[4] = random.below(256);
  head.writeUInt32BE(random.below(5), 5);
  return Buffer.concat([head, payload]);
}

/** Some random values, such as a time out of range, have no JSON form in this encoder. */
function encodeSafely(desc: DescMessage, message: Message): string {
  try {
    return encodeJson(desc, message);
  } catch {
    return '{}';
  }
}

function flatten(json: Readonly<Record<string, unknown>>, prefix = ''): [string, string][] {
  return Object.entries(json).flatMap(([key, value]): [string, string][] => {
    if (Array.isArray(value)) return value.map((item) => [prefix + key, textOf(item)]);
    if (typeof value === 'object' && value !== null)
      return flatten(value as Record<string, unknown>, `${prefix}${key}.`);
    return [[prefix + key, String(value)]];
  });
}

const textOf = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));
const camelCase = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
