import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { encodePath, encodeQuery, encodeUri, type SignedRequest, sha256Hex, signedHeaders } from './signature.ts';

// The examples of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const now = Date.parse('2013-05-24T00:00:00Z');
const host = 'examplebucket.s3.amazonaws.com';
const empty = sha256Hex('');
const content = sha256Hex('Welcome to Amazon S3.');

const examples: readonly (SignedRequest & { readonly name: string; readonly signature: string })[] = [
  {
    name: 'GET object with a range',
    method: 'GET',
    path: '/test.txt',
    query: {},
    headers: { host, range: 'bytes=0-9', 'x-amz-content-sha256': empty },
    signature: 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  },
  {
    name: 'PUT object',
    method: 'PUT',
    path: encodePath('/test$file.text'),
    query: {},
    headers: {
      host,
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      'x-amz-content-sha256': content,
    },
    signature: '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  },
  {
    name: 'GET bucket lifecycle',
    method: 'GET',
    path: '/',
    query: { lifecycle: '' },
    headers: { host, 'x-amz-content-sha256': empty },
    signature: 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  },
  {
    name: 'list objects',
    method: 'GET',
    path: '/',
    query: { prefix: 'J', 'max-keys': '2' },
    headers: { host, 'x-amz-content-sha256': empty },
    signature: '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  },
];

describe('signature of an S3 request', () => {
  for (const { name, signature, ...request } of examples) {
    it(`is that of the documentation: ${name}`, () => {
      const { authorization } = signedHeaders(request, { credentials, region: 'us-east-1', now });
      assert.equal(authorization?.split('Signature=')[1], signature);
    });
  }

  it('covers the token of temporary keys', () => {
    const request = { method: 'GET', path: '/', query: {}, headers: { host, 'x-amz-content-sha256': empty } };
    const signed = signedHeaders(request, {
      credentials: { ...credentials, sessionToken: 'token' },
      ...{ region: 'us-east-1', now },
    });
    assert.equal(signed['x-amz-security-token'], 'token');
    assert.match(signed.authorization ?? '', /SignedHeaders=[^,]*x-amz-security-token/);
  });
});

describe('encoding for signatures', () => {
  it('leaves only unreserved characters, and can be decoded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const encoded = encodeUri(text);
        assert.match(encoded, /^(?:[A-Za-z0-9\-._~]|%[0-9A-F]{2})*$/);
        assert.equal(decodeURIComponent(encoded), text);
      }),
    );
  });

  it('keeps the slashes of a path and nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (segments) => {
        const decoded = encodePath(segments.join('/')).split('/').map(decodeURIComponent);
        assert.deepEqual(decoded.join('/'), segments.join('/'));
      }),
    );
  });

  it('gives a query that a URL parser reads back, sorted by name', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string({ unit: 'grapheme' })),
        (query) => {
          const encoded = encodeQuery(query);
          const parsed = [...new URLSearchParams(encoded)];
          assert.deepEqual(new Map(parsed), new Map(Object.entries(query)));
          const names = encoded === '' ? [] : encoded.split('&').map((pair) => pair.split('=')[0]);
          assert.deepEqual(names, names.toSorted());
        },
      ),
    );
  });
});
