import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPermission } from './handshake.ts';

const read = (origin: string | undefined, rate?: string) =>
  readPermission({ 'webhook-allowed-origin': origin, 'webhook-allowed-rate': rate }, 'wharf.example.com');

test('a sink permits deliveries by naming this server, or all', () => {
  for (const origin of ['wharf.example.com', 'Wharf.Example.com', '*', 'other.example.com, wharf.example.com']) {
    assert.equal(read(origin).isPermitted, true, origin);
  }
  for (const origin of [undefined, '', 'example.com', 'other.example.com', 'wharf.example.com.other.example']) {
    assert.equal(read(origin).isPermitted, false, origin);
  }
});

test('a sink may state the requests per minute that it permits', () => {
  assert.equal(read('*', '120').allowedRate, 120);
  for (const rate of [undefined, '*', '0', '-1', 'many', '1e3']) assert.equal(read('*', rate).allowedRate, undefined);
});
