import type { S3Client } from '../s3/client.ts';
import { isMissing } from '../s3/errors.ts';
import type { S3Location } from '../s3/location.ts';
import { type BackupTarget, MissingFileError } from './target.ts';

/** A larger object is sent in parts, each of which is retried alone. */
const SINGLE_PUT_BYTES = 64 * 1024 * 1024;

/** Stores backups as objects below a prefix of an S3 bucket. */
export function createS3Target(client: S3Client, { bucket, prefix }: S3Location): BackupTarget {
  return {
    name: `s3://${bucket}/${prefix}`,
    stagingDirectory: () => undefined,
    freeBytes: async () => undefined,
    readText: async (key) => (await client.get(key))?.toString('utf8'),
    async *read(key) {
      try {
        yield* client.read(key);
      } catch (error) {
        throw isMissing(error) ? new MissingFileError(key) : error;
      }
    },
    list: (below) => client.list(below),
    async write(key, { open, size, sha256 }) {
      if (size === undefined || size > SINGLE_PUT_BYTES) await client.upload(key, open());
      else await client.put(key, { length: size, sha256, open });
    },
    writeIfAbsent: (key, text) => client.put(key, Buffer.from(text), { ifAbsent: true }),
    remove: (key) => client.remove(key),
    async removeLeftovers(liveRuns) {
      // The key of a blob does not say which run uploads it. A run that began meanwhile has younger uploads.
      const abandonedBefore = liveRuns.size === 0 ? Date.now() - 3_600_000 : Number.NEGATIVE_INFINITY;
      for await (const upload of client.unfinishedUploads()) {
        const owner = /^backups\/([^/]+)\//.exec(upload.key)?.[1];
        const isAbandoned = owner === undefined ? upload.begun < abandonedBefore : !liveRuns.has(owner);
        if (isAbandoned) await client.abortUpload(upload);
      }
    },
    async isEmpty() {
      for await (const _ of client.list()) return false;
      return true;
    },
    close: client.close,
  };
}
