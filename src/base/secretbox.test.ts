import assert from 'node:assert/strict';
import { createCipheriv, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { keyIdOf, open, seal, sealingKey, UnsealError } from './secretbox.ts';

const key = sealingKey(randomBytes(32));

const PREFIX = `v2:${key.id}:`.length;

test('every sealed secret opens again', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: 'grapheme' }), (secret, context) => {
      assert.deepEqual(Uint8Array.from(open(key, seal(key, secret, context), context)), secret);
    }),
    { seed: 1, numRuns: 200 },
  );
  assert.equal(open(key, seal(key, 'grüß dich', 'a'), 'a').toString(), 'grüß dich');
});

test('the same secret is sealed differently each time and does not appear in the result', () => {
  const secret = 'a secret of some length';
  const [one, other] = [seal(key, secret, 'a'), seal(key, secret, 'a')];
  assert.notEqual(one, other);
  assert.match(one, /^v2:[0-9a-f]{16}:[A-Za-z0-9+/]+={0,2}$/);
  assert.equal(keyIdOf(one), key.id);
  assert.ok(!Buffer.from(one.slice(PREFIX), 'base64').includes(secret));
});

test('a secret does not open with another key or another context', () => {
  const sealed = seal(key, 'secret', 'signing-key a');
  assert.throws(() => open(sealingKey(randomBytes(32)), sealed, 'signing-key a'), UnsealError);
  assert.throws(() => open(key, sealed, 'signing-key b'), UnsealError);
});

test('a sealed secret does not open after a bit was flipped, or bytes were removed or added', () => {
  const sealed = Buffer.from(seal(key, 'secret', 'a').slice(PREFIX), 'base64');
  const text = (bytes: Buffer) => `v2:${key.id}:${bytes.toString('base64')}`;
  assert.equal(open(key, text(sealed), 'a').toString(), 'secret');
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const altered = Buffer.from(sealed);
    altered.writeUInt8(altered.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    assert.throws(() => open(key, text(altered), 'a'), UnsealError);
  }
  for (let length = 0; length < sealed.length; length++) {
    assert.throws(() => open(key, text(sealed.subarray(0, length)), 'a'), UnsealError);
  }
  assert.throws(() => open(key, text(Buffer.concat([sealed, Buffer.alloc(1)])), 'a'), UnsealError);
});

test('a text without a version or of another version is refused with its own message', () => {
  for (const text of ['', 'v1:', 'v2:AAAA', 'v3:AAAA', 'plain', seal(key, 'x', 'a').slice(PREFIX)]) {
    assert.throws(() => open(key, text, 'a'), { name: 'UnsealError', message: /of an unknown version/ });
  }
});

test('a secret of version 1, which does not name its key, opens with its key only', () => {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key.bytes, nonce).setAAD(Buffer.from('a'));
  const content = Buffer.concat([nonce, cipher.update('secret'), cipher.final(), cipher.getAuthTag()]);
  const sealed = `v1:${content.toString('base64')}`;
  assert.equal(keyIdOf(sealed), undefined);
  assert.equal(open(key, sealed, 'a').toString(), 'secret');
  assert.throws(() => open(sealingKey(randomBytes(32)), sealed, 'a'), UnsealError);
});
