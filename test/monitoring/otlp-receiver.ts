import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { gunzipSync } from 'node:zlib';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** A span as it was received. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 0 unset, 2 error. */
  readonly status: number;
  /** The attributes of the process that sent it. */
  readonly resource: Readonly<Record<string, string | number>>;
}

export interface OtlpReceiver {
  readonly url: string;
  /** All received spans, oldest first. */
  readonly spans: ReceivedSpan[];
  close(): Promise<void>;
}

/** The receiver of the OpenTelemetry Collector if TEST_COLLECTOR names its program, otherwise one in this process. */
export const startOtlpReceiver = (): Promise<OtlpReceiver> => {
  const program = process.env.TEST_COLLECTOR;
  return program ? startCollector(program) : startReceiver();
};

async function startCollector(program: string): Promise<OtlpReceiver> {
  const child: ChildProcess = spawn(program, { stdio: ['ignore', 'pipe', 'inherit'] });
  const spans: ReceivedSpan[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the collector ended with ${code}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.startsWith('{')) spans.push(...spansInJson(JSON.parse(line)));
      else resolve(`http://${line}`);
    });
  });
  return {
    url,
    spans,
    async close() {
      child.kill();
      await once(child, 'close');
    },
  };
}

interface JsonValue {
  readonly stringValue?: string;
  readonly intValue?: string;
}
type JsonAttributes = readonly { readonly key: string; readonly value: JsonValue }[];
interface JsonExport {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes?: JsonAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[];
  }[];
}
type JsonSpan = Omit<ReceivedSpan, 'attributes' | 'status' | 'links'> & {
  readonly attributes?: JsonAttributes;
  readonly status?: { readonly code?: number };
  readonly links?: ReceivedSpan['links'];
};

const attributesInJson = (attributes: JsonAttributes = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));

const spansInJson = ({ resourceSpans }: JsonExport): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ parentSpanId = '', traceState = '', links = [], status, attributes, ...span }) => ({
        ...span,
        parentSpanId,
        traceState,
        links: links.map(({ traceId, spanId }) => ({ traceId, spanId })),
        status: status?.code ?? 0,
        attributes: attributesInJson(attributes),
        resource: attributesInJson(resource.attributes),
      })),
    ),
  );

/** Receives OTLP in protobuf and reads the fields that the tests use, by the numbers of opentelemetry-proto 1.x. */
async function startReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const server = createServer(async (req, res) => {
    const body = Buffer.concat(await req.toArray());
    const isOtlp = req.url === '/v1/traces' && req.headers['content-type'] === 'application/x-protobuf';
    if (isOtlp) spans.push(...spansInProtobuf(decoded(req.headers, body)));
    res.writeHead(isOtlp ? 200 : 400, { 'content-type': 'application/x-protobuf' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const decoded = (headers: IncomingHttpHeaders, body: Buffer): Buffer =>
  headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;

type Field = Uint8Array | number;

/** The fields of a message by their number. Nested messages, bytes and text are bytes. */
function fieldsOf(bytes: Field | undefined): Map<number, Field[]> {
  const fields = new Map<number, Field[]>();
  if (!(bytes instanceof Uint8Array)) return fields;
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    let value: Field | undefined;
    if (type === WireType.LengthDelimited) value = reader.bytes();
    else if (type === WireType.Varint) value = Number(reader.int64());
    else reader.skip(type, number);
    if (value !== undefined) fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

const textOf = (field: Field | undefined): string => (field instanceof Uint8Array ? Buffer.from(field).toString() : '');
const hexOf = (field: Field | undefined): string =>
  field instanceof Uint8Array ? Buffer.from(field).toString('hex') : '';

const attributesOf = (fields: readonly Field[] = []) =>
  Object.fromEntries(
    fields.map((field) => {
      const pair = fieldsOf(field);
      const value = fieldsOf(pair.get(2)?.[0]);
      const number = value.get(3)?.[0];
      return [textOf(pair.get(1)?.[0]), typeof number === 'number' ? number : textOf(value.get(1)?.[0])];
    }),
  );

const spansInProtobuf = (bytes: Uint8Array): ReceivedSpan[] =>
  (fieldsOf(bytes).get(1) ?? []).flatMap((resourceSpans) => {
    const fields = fieldsOf(resourceSpans);
    const resource = attributesOf(fieldsOf(fields.get(1)?.[0]).get(1));
    const spans = (fields.get(2) ?? []).flatMap((scopeSpans) => fieldsOf(scopeSpans).get(2) ?? []);
    return spans.map((field) => toSpan(fieldsOf(field), resource));
  });

const toSpan = (span: Map<number, Field[]>, resource: ReceivedSpan['resource']): ReceivedSpan => ({
  traceId: hexOf(span.get(1)?.[0]),
  spanId: hexOf(span.get(2)?.[0]),
  traceState: textOf(span.get(3)?.[0]),
  parentSpanId: hexOf(span.get(4)?.[0]),
  name: textOf(span.get(5)?.[0]),
  kind: Number(span.get(6)?.[0] ?? 0),
  attributes: attributesOf(span.get(9)),
  links: (span.get(13) ?? []).map((link) => {
    const fields = fieldsOf(link);
    return { traceId: hexOf(fields.get(1)?.[0]), spanId: hexOf(fields.get(2)?.[0]) };
  }),
  status: Number(fieldsOf(span.get(15)?.[0]).get(3)?.[0] ?? 0),
  resource,
});
