import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { clone, createFileRegistry, type DescFile, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '../../base/errors.ts';
import { file_chainguard_platform_ping_v2_ping as ping } from '../../contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { files, services } from '../../contract/method-table.ts';
import { grpcClient, startServer } from '../server.testing.ts';
import { withDependencies } from './descriptor-index.ts';

const buf = fileURLToPath(new URL('../../../node_modules/.bin/buf', import.meta.url));

// The tests read and write the wire format by field numbers, so that they do not depend on the generated code.

/** The fields of a message whose fields are strings, bytes, messages or integers, as pairs of number and value. */
function fieldsOf(bytes: Uint8Array): [field: number, value: Uint8Array | number][] {
  const reader = new BinaryReader(bytes);
  const fields: [number, Uint8Array | number][] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    fields.push([field, wireType === WireType.Varint ? reader.int32() : reader.bytes()]);
  }
  return fields;
}

/** Reads the value of a repeated int32 field: proto3 packs the numbers. */
function packedNumbers(value: Uint8Array | number | undefined): number[] {
  assert.ok(value instanceof Uint8Array);
  const reader = new BinaryReader(value);
  const numbers: number[] = [];
  while (reader.pos < reader.len) numbers.push(reader.int32());
  return numbers;
}

/** Sends one request on a new stream. Returns the fields of the response, and the number and fields of its result. */
async function send(t: TestContext, address: string, request: Uint8Array) {
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
  const stream = grpcClient(t, address).client.makeBidiStreamRequest(path, unchanged, unchanged);
  stream.end(Buffer.from(request));
  const [bytes]: Buffer[] = await once(stream, 'data');
  assert.ok(bytes);
  const response = fieldsOf(bytes);
  const [resultField, result] = response.at(-1) ?? assert.fail('the response is empty');
  assert.ok(result instanceof Uint8Array);
  return { response, resultField, result: fieldsOf(result) };
}

const unchanged = (bytes: Buffer) => bytes;

const FILE_BY_FILENAME = 3;
const FILE_CONTAINING_SYMBOL = 4;
const FILE_CONTAINING_EXTENSION = 5;
const ALL_EXTENSION_NUMBERS_OF_TYPE = 6;
const LIST_SERVICES = 7;
const UNKNOWN_QUERY = 9;

const FILE_DESCRIPTOR_RESPONSE = 4;
const ALL_EXTENSION_NUMBERS_RESPONSE = 5;
const ERROR_RESPONSE = 7;

const requestFor = (query: number, value: string): Uint8Array =>
  new BinaryWriter()
    .tag(1, WireType.LengthDelimited)
    .string('host')
    .tag(query, WireType.LengthDelimited)
    .string(value)
    .finish();

const descriptorOf = (file: DescFile) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto));

for (const version of ['grpc-v1', 'grpc-v1alpha']) {
  test(`an independent tool lists all services: ${version}`, async (t) => {
    const { address } = await startServer(t);
    const options = ['--http2-prior-knowledge', '--protocol=grpc', `--reflect-protocol=${version}`, '--list-services'];
    const { stdout } = await promisify(execFile)(buf, ['curl', ...options, `http://${address}`]);
    assert.deepEqual(stdout.trim().split('\n').sort(), services.map(({ typeName }) => typeName).sort());
  });
}

test('every file is served byte for byte, with its custom options and everything it imports', async (t) => {
  const { address } = await startServer(t);
  for (const file of files) {
    const request = requestFor(FILE_BY_FILENAME, file.proto.name);
    const { response, resultField, result } = await send(t, address, request);
    assert.equal(resultField, FILE_DESCRIPTOR_RESPONSE);
    assert.deepEqual(
      result.map(([, bytes]) => bytes),
      [...withDependencies([file])].map(descriptorOf),
    );
    assert.deepEqual(response[0], [1, Buffer.from('host')], 'the response has the host');
    assert.deepEqual(response[1], [2, Buffer.from(request)], 'the response has the request');
  }
});

for (const symbol of [
  'chainguard.platform.ping.v2.PingService',
  'chainguard.platform.ping.v2.PingService.Ping',
  'chainguard.platform.ping.v2.PingResponse',
  'chainguard.platform.ping.v2.PingResponse.response',
]) {
  test(`a symbol leads to its file: ${symbol}`, async (t) => {
    const { address } = await startServer(t);
    const { resultField, result } = await send(t, address, requestFor(FILE_CONTAINING_SYMBOL, symbol));
    assert.deepEqual([resultField, result[0]?.[1]], [FILE_DESCRIPTOR_RESPONSE, descriptorOf(ping)]);
  });
}

test('extensions are found by the message they extend', async (t) => {
  const { address } = await startServer(t);
  const message = 'google.protobuf.MethodOptions';
  const numbers = await send(t, address, requestFor(ALL_EXTENSION_NUMBERS_OF_TYPE, message));
  assert.equal(numbers.resultField, ALL_EXTENSION_NUMBERS_RESPONSE);
  assert.deepEqual(numbers.result[0], [1, Buffer.from(message)]);
  assert.equal(numbers.result[1]?.[0], 2);
  assert.ok(packedNumbers(numbers.result[1]?.[1]).includes(72295728));

  const request = new BinaryWriter().tag(FILE_CONTAINING_EXTENSION, WireType.LengthDelimited).fork();
  request.tag(1, WireType.LengthDelimited).string(message).tag(2, WireType.Varint).int32(72295728);
  const { resultField, result } = await send(t, address, request.join().finish());
  assert.equal(resultField, FILE_DESCRIPTOR_RESPONSE);
  const annotations = [...withDependencies(files)].find(({ proto }) => proto.name === 'google/api/annotations.proto');
  assert.ok(annotations);
  assert.deepEqual(result[0]?.[1], descriptorOf(annotations));
});

for (const [name, request, code] of [
  ['a file', requestFor(FILE_BY_FILENAME, 'no/such.proto'), Code.NOT_FOUND],
  ['a symbol', requestFor(FILE_CONTAINING_SYMBOL, 'no.such.Type'), Code.NOT_FOUND],
  ['a type', requestFor(ALL_EXTENSION_NUMBERS_OF_TYPE, 'no.such.Type'), Code.NOT_FOUND],
  ['a kind of query', requestFor(UNKNOWN_QUERY, ''), Code.UNIMPLEMENTED],
  ['an encoding', Uint8Array.from([0xff, 0xff]), Code.INVALID_ARGUMENT],
] as const) {
  test(`the response to an unknown value is an error: ${name}`, async (t) => {
    const { address } = await startServer(t);
    const { resultField, result } = await send(t, address, request);
    assert.deepEqual([resultField, result[0]], [ERROR_RESPONSE, [1, code]]);
  });
}

test('a file under a second name is listed too', async (t) => {
  const proto = clone(FileDescriptorProtoSchema, ping.proto);
  proto.name = proto.name.replace('/v2/', '/v2beta1/');
  proto.package = 'chainguard.platform.ping.v2beta1';
  for (const method of proto.service.flatMap((service) => service.method)) {
    method.inputType = method.inputType.replace('.v2.', '.v2beta1.');
    method.outputType = method.outputType.replace('.v2.', '.v2beta1.');
  }
  const imported = (name: string) => ping.dependencies.find((file) => file.proto.name === name);
  const alias = createFileRegistry(proto, imported).getFile(proto.name);
  assert.ok(alias);
  const { address } = await startServer(t, { files: [ping, alias] });
  const { result } = await send(t, address, requestFor(LIST_SERVICES, '*'));
  assert.deepEqual(
    result.map(([, service]) => service instanceof Uint8Array && Buffer.from(service.subarray(2)).toString()),
    ['chainguard.platform.ping.v2.PingService', 'chainguard.platform.ping.v2beta1.PingService'],
  );
});
