import type { DescFile } from '@bufbuild/protobuf';
import { toBinary } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Server, ServerDuplexStream } from '@grpc/grpc-js';
import { Code } from '../../base/errors.ts';
import { type DescriptorIndex, indexFiles, withDependencies } from './descriptor-index.ts';

/**
 * gRPC server reflection, for tools such as grpcurl. The package `@grpc/reflection` re-encodes descriptors and loses
 * every custom option on the way: our routes, capabilities and field behaviours. Here they arrive byte for byte.
 */
export function addReflection(server: Server, files: () => readonly DescFile[]): void {
  // Most servers are never asked, and their start need not wait for it.
  let index: DescriptorIndex | undefined;
  const serve = (stream: ServerDuplexStream<Buffer, Buffer>) => {
    index ??= indexFiles(files());
    const known = index;
    stream.on('data', (request: Buffer) => stream.write(respond(known, request)));
    stream.on('end', () => stream.end());
  };
  // The two versions differ in nothing but their names.
  for (const version of ['v1', 'v1alpha']) {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    server.register(path, serve, same, same, 'bidi');
  }
}

const same = (bytes: Buffer): Buffer => bytes;

/** The oneof of ServerReflectionRequest, by field number. */
const Ask = { FILE: 3, SYMBOL: 4, EXTENSION: 5, EXTENSION_NUMBERS: 6, SERVICES: 7 } as const;

/** The fields of ServerReflectionResponse. */
const Tell = { HOST: 1, REQUEST: 2, FILES: 4, EXTENSION_NUMBERS: 5, SERVICES: 6, ERROR: 7 } as const;

interface Question {
  host: string;
  ask: number;
  name: string;
  extension: number;
}

type Answer = readonly [field: number, message: BinaryWriter];

function respond(index: DescriptorIndex, request: Buffer): Buffer {
  const response = new BinaryWriter();
  let answer: Answer;
  try {
    const question = readQuestion(request);
    text(response, Tell.HOST, question.host);
    bytes(response, Tell.REQUEST, request);
    answer = answerTo(index, question);
  } catch {
    answer = refusal(Code.INVALID_ARGUMENT, 'request must be a valid ServerReflectionRequest');
  }
  const [field, message] = answer;
  return Buffer.from(bytes(response, field, message.finish()).finish());
}

function readQuestion(request: Uint8Array): Question {
  const question: Question = { host: '', ask: 0, name: '', extension: 0 };
  const reader = new BinaryReader(request);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) {
      question.host = reader.string();
    } else if (field === Ask.EXTENSION) {
      Object.assign(question, { ask: field }, readExtensionRequest(reader.bytes()));
    } else if (field >= Ask.FILE && field <= Ask.SERVICES) {
      Object.assign(question, { ask: field, name: reader.string() });
    } else {
      reader.skip(wireType, field);
    }
  }
  return question;
}

function readExtensionRequest(request: Uint8Array): Pick<Question, 'name' | 'extension'> {
  const found = { name: '', extension: 0 };
  const reader = new BinaryReader(request);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) found.name = reader.string();
    else if (field === 2) found.extension = reader.int32();
    else reader.skip(wireType, field);
  }
  return found;
}

function answerTo(index: DescriptorIndex, { ask, name, extension }: Question): Answer {
  switch (ask) {
    case Ask.SERVICES: {
      const services = new BinaryWriter();
      for (const service of index.services) bytes(services, 1, text(new BinaryWriter(), 1, service).finish());
      return [Tell.SERVICES, services];
    }
    case Ask.FILE:
      return filesFrom(index.byName.get(name), `file ${name}`);
    case Ask.SYMBOL:
      return filesFrom(index.bySymbol.get(name), `symbol ${name}`);
    case Ask.EXTENSION:
      return filesFrom(index.extensions.get(name)?.get(extension), `extension ${extension} of ${name}`);
    case Ask.EXTENSION_NUMBERS: {
      if (!index.bySymbol.has(name)) return unknown(`type ${name}`);
      const numbers = text(new BinaryWriter(), 1, name);
      for (const number of index.extensions.get(name)?.keys() ?? []) numbers.tag(2, WireType.Varint).int32(number);
      return [Tell.EXTENSION_NUMBERS, numbers];
    }
    default:
      return refusal(Code.UNIMPLEMENTED, 'this kind of reflection request is not known here');
  }
}

/** The file and everything it imports, so that a tool need not ask again. */
function filesFrom(file: DescFile | undefined, wanted: string): Answer {
  if (file === undefined) return unknown(wanted);
  const files = new BinaryWriter();
  for (const { proto } of withDependencies([file])) bytes(files, 1, toBinary(FileDescriptorProtoSchema, proto));
  return [Tell.FILES, files];
}

const unknown = (wanted: string): Answer => refusal(Code.NOT_FOUND, `${wanted} is not known here`);

const refusal = (code: Code, message: string): Answer => [
  Tell.ERROR,
  text(new BinaryWriter().tag(1, WireType.Varint).int32(code), 2, message),
];

const text = (writer: BinaryWriter, field: number, value: string): BinaryWriter =>
  writer.tag(field, WireType.LengthDelimited).string(value);

const bytes = (writer: BinaryWriter, field: number, value: Uint8Array): BinaryWriter =>
  writer.tag(field, WireType.LengthDelimited).bytes(value);
