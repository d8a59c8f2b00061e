/** A read over gRPC, compared with a plain grpc-js server that sends the same message. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { GetRepoRequestSchema, RepoSchema } from '../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { type Dataset, ensureDataset } from './data.ts';
import { startChildProgram } from './lib/child-program.ts';
import { warmUpAndCompare } from './lib/compare.ts';
import { grpcLoad } from './lib/load.ts';
import { formatFigure, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { LARGE } from './lib/sizes.ts';

/** The request that is measured: it gets the first sample. */
export const getRepoRequest = ({ samples }: Dataset): Uint8Array =>
  toBinary(GetRepoRequestSchema, create(GetRepoRequestSchema, { uid: samples[0]?.uid ?? '' }));

export const GET_REPO_PATH = '/chainguard.platform.registry.v2.ReposService/GetRepo';

export const grpc: Suite = async (print) => {
  const data = await ensureDataset(LARGE, print);
  const server = await startBenchServer(data);
  const request = getRepoRequest(data);
  const baseline = startChildProgram('baseline-grpc.ts');
  try {
    const message = await responseTo(server, request);
    const port = await baseline.request<number>({ path: GET_REPO_PATH, message });
    const target = { url: server.url, path: GET_REPO_PATH, headers: server.headers };
    const baselineTarget = { ...target, url: `http://127.0.0.1:${port}` };
    const { ratio, a, b } = await warmUpAndCompare(
      (seconds) => grpcLoad(target, request, seconds),
      (seconds) => grpcLoad(baselineTarget, request, seconds),
    );
    return [
      {
        benchmark: 'gRPC GetRepo',
        baseline: 'plain grpc-js server',
        value: ratio,
        unit: 'times',
        limit: { atLeast: 0.6 },
        figures: `${formatFigure(a)}/s against ${formatFigure(b)}/s`,
      },
    ];
  } finally {
    await baseline.stop();
    await server.stop();
  }
};

/** Calls once and checks the response, because the load generator does not check the messages. */
async function responseTo(server: BenchServer, request: Uint8Array): Promise<Uint8Array> {
  const client = new Client(new URL(server.url).host, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(server.headers)) metadata.set(name, value);
  const unchanged = (bytes: Buffer): Buffer => bytes;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  client.makeUnaryRequest(GET_REPO_PATH, unchanged, unchanged, Buffer.from(request), metadata, (error, response) =>
    error || !response ? reject(error) : resolve(response),
  );
  const response = await promise.finally(() => client.close());
  if (fromBinary(RepoSchema, response).name === '') throw new Error('the response is an empty repo');
  return response;
}

if (import.meta.main) await runSuite(grpc);
