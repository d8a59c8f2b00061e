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

/** The fields of a message whose fields are all texts, bytes, messages or small numbers. */
function fieldsOf(bytes: Uint8Array): [field: number, value: Uint8Array | number][] {
  const reader = new BinaryReader(bytes);
  const fields: [number, Uint8Array | number][] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    fields.push([field, wireType === WireType.Varint ? reader.int32() : reader.bytes()]);
  }
  return fields;
}

/** Asks one question on a stream of its own and answers the number and the fields of what the server tells. */
async function ask(t: TestContext, address: string, question: Uint8Array) {
  const same = (bytes: Buffer) => bytes;
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
  const stream = grpcClient(t, address).client.makeBidiStreamRequest(path, same, same);
  stream.end(Buffer.from(question));
  const [response]: Buffer[] = await once(stream, 'data');
  assert.ok(response);
  const answer = fieldsOf(response).at(-1);
  assert.ok(answer?.[1] instanceof Uint8Array);
  const [field, message] = answer;
  return { field, fields: fieldsOf(message), whole: fieldsOf(response) };
}

const asking = (field: number, name: string) =>
  new BinaryWriter().tag(1, WireType.LengthDelimited).string('host').tag(field, WireType.LengthDelimited).string(name);

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
    const { field, fields, whole } = await ask(t, address, asking(3, file.proto.name).finish());
    assert.equal(field, 4);
    assert.deepEqual(
      fields.map(([, bytes]) => bytes),
      [...withDependencies([file])].map(descriptorOf),
    );
    assert.deepEqual(whole[1], [2, Buffer.from(asking(3, file.proto.name).finish())], 'the question comes back');
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
    const { field, fields } = await ask(t, address, asking(4, symbol).finish());
    assert.deepEqual([field, fields[0]?.[1]], [4, descriptorOf(ping)]);
  });
}

test('extensions are found by the message they extend', async (t) => {
  const { address } = await startServer(t);
  const numbers = await ask(t, address, asking(6, 'google.protobuf.MethodOptions').finish());
  assert.equal(numbers.field, 5);
  assert.ok(numbers.fields.some(([field, value]) => field === 2 && value === 72295728));

  const http = new BinaryWriter().tag(5, WireType.LengthDelimited).fork();
  http.tag(1, WireType.LengthDelimited).string('google.protobuf.MethodOptions').tag(2, WireType.Varint).int32(72295728);
  const { field, fields } = await ask(t, address, http.join().finish());
  assert.equal(field, 4);
  const annotations = [...withDependencies(files)].find(({ proto }) => proto.name === 'google/api/annotations.proto');
  assert.ok(annotations);
  assert.deepEqual(fields[0]?.[1], descriptorOf(annotations));
});

for (const [name, question, code] of [
  ['a file', asking(3, 'no/such.proto').finish(), Code.NOT_FOUND],
  ['a symbol', asking(4, 'no.such.Type').finish(), Code.NOT_FOUND],
  ['a type', asking(6, 'no.such.Type').finish(), Code.NOT_FOUND],
  ['a kind of question', asking(9, '').finish(), Code.UNIMPLEMENTED],
  ['a language', Uint8Array.from([0xff, 0xff]), Code.INVALID_ARGUMENT],
] as const) {
  test(`what is not known is answered with an error: ${name}`, async (t) => {
    const { address } = await startServer(t);
    const { field, fields } = await ask(t, address, question);
    assert.deepEqual([field, fields[0]], [7, [1, code]]);
  });
}

test('files under another name are shown beside the first', async (t) => {
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
  const { fields } = await ask(t, address, asking(7, '*').finish());
  assert.deepEqual(
    fields.map(([, service]) => service instanceof Uint8Array && Buffer.from(service.subarray(2)).toString()),
    ['chainguard.platform.ping.v2.PingService', 'chainguard.platform.ping.v2beta1.PingService'],
  );
});
