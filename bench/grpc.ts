/** A read over gRPC against a bare grpc-js that answers with the same message. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { GetRepoRequestSchema, RepoSchema } from '../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { type Dataset, dataset } from './data.ts';
import { startChild } from './lib/child.ts';
import { grpcLoad } from './lib/load.ts';
import { runAlone, type Suite, short } from './lib/result.ts';
import { warmAndCompare } from './lib/rounds.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { BIG } from './lib/sizes.ts';

/** The call that is measured, of the first sample. */
export const getRepo = ({ samples }: Dataset): Uint8Array =>
  toBinary(GetRepoRequestSchema, create(GetRepoRequestSchema, { uid: samples[0]?.uid ?? '' }));

export const PATH = '/chainguard.platform.registry.v2.ReposService/GetRepo';

export const grpc: Suite = async (print) => {
  const data = await dataset(BIG, print);
  const server = await startBenchServer(data);
  const request = getRepo(data);
  const bare = startChild('bare-grpc.ts');
  try {
    const message = await answerOf(server, request);
    const port = await bare.ask<number>({ path: PATH, message });
    const ours = { url: server.url, path: PATH, headers: server.headers };
    const theirs = { ...ours, url: `http://127.0.0.1:${port}` };
    const { ratio, a, b } = await warmAndCompare(
      (seconds) => grpcLoad(ours, request, seconds),
      (seconds) => grpcLoad(theirs, request, seconds),
    );
    return [
      {
        benchmark: 'gRPC GetRepo',
        baseline: 'bare grpc-js',
        value: ratio,
        unit: 'times',
        bar: { atLeast: 0.6 },
        figures: `${short(a)}/s against ${short(b)}/s`,
      },
    ];
  } finally {
    await bare.stop();
    await server.stop();
  }
};

/** The generator does not look at answers, so one is looked at here. */
async function answerOf(server: BenchServer, request: Uint8Array): Promise<Uint8Array> {
  const client = new Client(new URL(server.url).host, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(server.headers)) metadata.set(name, value);
  const same = (bytes: Buffer): Buffer => bytes;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  client.makeUnaryRequest(PATH, same, same, Buffer.from(request), metadata, (error, answer) =>
    error || !answer ? reject(error) : resolve(answer),
  );
  const answer = await promise.finally(() => client.close());
  if (fromBinary(RepoSchema, answer).name === '') throw new Error('an empty repo came back');
  return answer;
}

if (import.meta.main) await runAlone(grpc);
