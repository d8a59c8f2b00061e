import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseProfiles, readCredentials } from './credentials.ts';
import { parseS3Location } from './location.ts';

describe('S3 location', () => {
  it('is a bucket with a prefix at AWS, addressed by its host', () => {
    const { endpoint, ...rest } = parseS3Location('s3://backups/wharf/a', { AWS_REGION: 'eu-central-1' });
    assert.equal(endpoint.origin, 'https://s3.eu-central-1.amazonaws.com');
    assert.deepEqual(rest, { bucket: 'backups', prefix: 'wharf/a/', region: 'eu-central-1', isPathStyle: false });
  });

  it('takes region and endpoint from the URL before the environment', () => {
    const url = 's3://backups?region=r1&endpoint=http://127.0.0.1:7070';
    const { endpoint, ...rest } = parseS3Location(url, { AWS_REGION: 'r2', AWS_ENDPOINT_URL: 'http://other' });
    assert.equal(endpoint.origin, 'http://127.0.0.1:7070');
    assert.deepEqual(rest, { bucket: 'backups', prefix: '', region: 'r1', isPathStyle: true });
    assert.equal(parseS3Location(`${url}&addressing=virtual`).isPathStyle, false);
  });

  const refused: readonly (readonly [url: string, message: RegExp])[] = [
    ['backups/wharf', /write an S3 location as s3:/],
    ['s3:///prefix', /name of a bucket/],
    ['s3://key:secret@backups/a', /has no keys/],
    ['s3://backups?regoin=x', /regoin is not a parameter/],
    ['s3://backups?endpoint=minio:9000', /endpoint must be a URL/],
    ['s3://backups?endpoint=https://host/path', /endpoint must be a URL/],
    ['s3://backups?addressing=dns', /path or virtual/],
    ['s3://backups/%zz', /prefix/],
  ];
  for (const [url, message] of refused) {
    it(`refuses ${url}`, () => assert.throws(() => parseS3Location(url), message));
  }
});

describe('credentials of S3', () => {
  it('come from the environment', () => {
    const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: 't' };
    assert.deepEqual(readCredentials(env), { accessKeyId: 'a', secretAccessKey: 's', sessionToken: 't' });
    assert.throws(() => readCredentials({ AWS_ACCESS_KEY_ID: 'a' }), /AWS_SECRET_ACCESS_KEY is not set/);
  });

  it('come from a profile of a file', () => {
    const directory = mkdtempSync(join(tmpdir(), 'wharf-s3-'));
    try {
      const file = join(directory, 'credentials');
      const text = '# keys\n[default]\naws_access_key_id = a\naws_secret_access_key=s=1\r\n[other]\nx = y\n';
      writeFileSync(file, text);
      const env = { AWS_SHARED_CREDENTIALS_FILE: file };
      assert.deepEqual(readCredentials(env), { accessKeyId: 'a', secretAccessKey: 's=1', sessionToken: undefined });
      assert.throws(() => readCredentials({ ...env, AWS_PROFILE: 'other' }), /there are no keys for S3.*\[other\]/);
      assert.deepEqual(parseProfiles(text).get('other'), new Map([['x', 'y']]));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
