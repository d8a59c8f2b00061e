import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createS3Client, type S3Client } from '../../src/s3/client.ts';
import { S3Error } from '../../src/s3/errors.ts';
import { parseS3Location } from '../../src/s3/location.ts';
import type { Credentials } from '../../src/s3/signature.ts';
import type { S3Server } from './versitygw.ts';

/** Tries every method of the S3 client on a real server. */
export async function tryS3Client(server: S3Server): Promise<void> {
  const connect = (query = '', credentials: Partial<Credentials> = {}, bucket = server.bucket): S3Client =>
    createS3Client({
      location: parseS3Location(`s3://${bucket}/client test/?endpoint=${server.endpoint}${query}`),
      credentials: {
        accessKeyId: server.env.AWS_ACCESS_KEY_ID ?? '',
        secretAccessKey: server.env.AWS_SECRET_ACCESS_KEY ?? '',
        ...credentials,
      },
      attempts: 2,
    });
  const client = connect();
  const key = "odd/b c+d(1)'ü%41.txt";
  await client.put(key, Buffer.from('hello'));
  assert.equal((await client.get(key))?.toString(), 'hello');
  assert.equal((await client.get(key, { start: 1, end: 3 }))?.toString(), 'ell');
  assert.equal((await client.head(key))?.size, 5);
  assert.equal(await client.get('none'), undefined);
  assert.equal(await client.head('none'), undefined);

  async function* stream(...chunks: Buffer[]) {
    yield* chunks;
  }
  await client.put('streamed', { length: 6, open: () => stream(Buffer.from('abc'), Buffer.from('def')) });
  assert.equal((await client.get('streamed'))?.toString(), 'abcdef');
  const broken = { length: 6, open: () => failing() };
  async function* failing() {
    yield Buffer.from('abc');
    throw new Error('the source failed');
  }
  await assert.rejects(client.put('broken', broken), /the source failed/);
  assert.equal(await client.head('broken'), undefined);
  const wrong = { length: 3, sha256: '0'.repeat(64), open: () => stream(Buffer.from('abc')) };
  await assert.rejects(client.put('wrong', wrong), S3Error);
  assert.equal(await client.head('wrong'), undefined);

  const race = await Promise.all(
    Array.from({ length: 8 }, (_, at) => client.put('once', Buffer.from(String(at)), { ifAbsent: true })),
  );
  assert.equal(race.filter(Boolean).length, 1, 'one of eight conditional puts succeeds');

  const large = Array.from({ length: 20 }, () => randomBytes(1024 * 1024));
  await client.upload('large', stream(...large));
  const read: Uint8Array[] = [];
  for await (const chunk of client.read('large')) read.push(chunk);
  assert.ok(Buffer.concat(read).equals(Buffer.concat(large)));
  await assert.rejects(client.upload('large broken', failingLate(large)), /the source failed/);
  assert.deepEqual(await collect(client.unfinishedUploads()), [], 'a failed upload is aborted');
  async function* failingLate(chunks: Buffer[]) {
    yield* chunks;
    throw new Error('the source failed');
  }

  const names = Array.from({ length: 1_105 }, (_, at) => `many/${String(at).padStart(5, '0')}`);
  for (let at = 0; at < names.length; at += 50) {
    await Promise.all(names.slice(at, at + 50).map((name) => client.put(name, Buffer.from('x'))));
  }
  assert.deepEqual(
    (await collect(client.list('many/'))).map((object) => object.key),
    names,
  );
  assert.equal((await collect(client.list('odd/')))[0]?.key, key);
  for (const { key: listed } of await collect(client.list())) await client.remove(listed);
  await client.remove('none');
  assert.deepEqual(await collect(client.list()), []);
  client.close();

  const refusals: readonly (readonly [S3Client, RegExp])[] = [
    [connect('', { secretAccessKey: 'other' }), /check AWS_SECRET_ACCESS_KEY/],
    [connect('&region=eu-none-1'), /not in the region eu-none-1/],
    [connect('', {}, 'no-such-bucket'), /the bucket no-such-bucket does not exist/],
  ];
  for (const [refused, message] of refusals) {
    await assert.rejects(refused.put('x', Buffer.from('x')), message);
    refused.close();
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
