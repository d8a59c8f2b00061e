import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertCheap } from './cpu-time.testing.ts';
import { createLogger, type LogFields, type LogLevel } from './log.ts';

function capture(level: LogLevel = 'info') {
  const lines: string[] = [];
  const log = createLogger({ level, destination: { write: (line) => lines.push(line) } });
  /** The last line, as text and as an object. */
  const last = () => {
    const text = lines.at(-1) ?? assert.fail('nothing was logged');
    return { text, fields: JSON.parse(text) as Record<string, unknown> };
  };
  return { log, lines, last };
}

test('a line is one JSON object with ISO time, level as a word, message and fields', () => {
  const { log, lines, last } = capture();
  log.warn({ requestId: 'r-1', count: 3, big: 5n, at: new Date(0) }, 'two\nlines');
  assert.equal(lines.length, 1);
  assert.match(last().text, /^[^\n]+\n$/);
  const { time, ...rest } = last().fields;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(rest, {
    level: 'warn',
    message: 'two\nlines',
    requestId: 'r-1',
    count: 3,
    big: '5',
    at: '1970-01-01T00:00:00.000Z',
  });
});

test('lines below the level are not written', () => {
  const { log, lines } = capture('warn');
  log.debug({}, 'd');
  log.info({}, 'i');
  log.warn({}, 'w');
  log.error({}, 'e');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).level),
    ['warn', 'error'],
  );
  const silent = capture('silent');
  silent.log.error({}, 'e');
  assert.equal(silent.lines.length, 0);
});

const SECRET = 'hunter2hunter2';
const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJvd25lciJ9.c2lnbmF0dXJl';

test('fields with the name of a secret are redacted at any depth', () => {
  const names = [
    'authorization',
    'Authorization',
    'token',
    'access_token',
    'refreshToken',
    'client_secret',
    'clientSecret',
  ];
  names.push('password', 'passwd', 'key', 'masterKey', 'private_key', 'keys', 'cookie', 'set-cookie', 'credentials');
  const { log, last } = capture();
  for (const name of names) {
    for (const fields of [{ [name]: SECRET }, { a: { b: [{ [name]: [SECRET] }] } }] as LogFields[]) {
      log.info(fields, 'called');
      assert.doesNotMatch(last().text, /hunter2/, name);
      assert.match(last().text, /\[redacted\]/, name);
    }
  }
});

test('secrets inside a text are redacted: in the message, a field, an error and its cause', () => {
  const texts = [
    `Authorization: Bearer ${SECRET}`,
    `authorization: ${SECRET}`,
    `{"authorization":"Basic ${SECRET}"}`,
    `sent Bearer ${SECRET} twice`,
    `connect to postgres://wharf:${SECRET}@db:5432/wharf failed`,
    `connect to postgres://wharf:p@ss/${SECRET}@db/wharf failed`,
    `POST /sts/exchange?grant=x&subject_token=${SECRET}&scope=y`,
    `client_secret=${SECRET}`,
    `{"client_secret": "${SECRET}"}`,
    `-----BEGIN EC PRIVATE KEY-----\n${SECRET}\n-----END EC PRIVATE KEY-----`,
    `-----BEGIN PRIVATE KEY-----\n${SECRET}`,
    `bad token ${JWT}`.replace('c2lnbmF0dXJl', SECRET),
  ];
  const { log, last } = capture();
  for (const text of texts) {
    log.info({}, text);
    assert.doesNotMatch(last().text, /hunter2/, text);
    const error = new Error(text, { cause: Object.assign(new Error(text), { connectionString: text }) });
    log.error({ note: text, error, url: URL.canParse(text) ? new URL(text) : text }, 'failed');
    assert.doesNotMatch(last().text, /hunter2/, text);
  }
  log.info({}, `token ${JWT} refused`);
  assert.equal(last().fields.message, 'token [redacted] refused');
});

test('a secret across the position where a long text is cut is redacted', () => {
  const { log, last } = capture();
  for (let padding = 2000; padding < 2060; padding += 7) {
    log.info({}, `${' '.repeat(padding)}postgres://wharf:${SECRET}@db/wharf ${JWT}`);
    assert.doesNotMatch(last().text, /hunter2|eyJ/);
  }
});

test('other text is not changed', () => {
  const texts = [
    'Invalid argument: page_token: was altered',
    'Unauthenticated: send a Bearer token',
    'GET /iam/v2/groups/abc?page_size=5 answered in 3 ms',
    'https://wharf.example.com:8080/docs',
    'user@example.com',
  ];
  const { log, last } = capture();
  for (const text of texts) {
    log.info({ keyId: 'k1' }, text);
    assert.equal(last().fields.message, text);
    assert.equal(last().fields.keyId, 'k1');
  }
});

test('an error is logged with its name, message, stack, fields and cause', () => {
  const { log, last } = capture();
  const cause = Object.assign(new TypeError('inner'), { code: 'ECONNREFUSED' });
  log.error({ error: new Error('outer', { cause }) }, 'failed');
  const error = last().fields.error as Record<string, Record<string, unknown>>;
  assert.equal(error.message, 'outer');
  assert.match(String(error.stack), /log\.test\.ts/);
  assert.equal(error.cause?.type, 'TypeError');
  assert.equal(error.cause?.code, 'ECONNREFUSED');
});

test('fields that libraries add to an error, and objects of a class, are not logged', () => {
  class Client {
    readonly statement = 'SELECT hidden FROM rows';
  }
  const { log, last } = capture();
  const added = { client: new Client(), query: 'SELECT hidden', parameters: ['hidden'], detail: 'Key (a)=(hidden)' };
  const error = Object.assign(new Error('outer'), added, { code: '57P01', table: 'resource' });
  error.cause = Object.assign(new AggregateError([Object.assign(new Error('one'), added)], 'several'), added);
  log.error({ error, client: new Client(), map: new Map([['a', 'hidden']]) }, 'failed');
  assert.doesNotMatch(last().text, /hidden|SELECT/);
  const { client, error: logged } = last().fields as { client: string; error: Record<string, unknown> };
  assert.equal(client, '[Client]');
  assert.deepEqual([logged.code, logged.table], ['57P01', 'resource']);
  assert.match(last().text, /"errors":\[\{"type":"Error","message":"one"/);
});

test('a stack has at most eight frames and does not repeat the message', () => {
  const { log, last } = capture();
  const nested = (depth: number): Error => (depth === 0 ? new Error('deep inside') : nested(depth - 1));
  log.error({ error: nested(20) }, 'failed');
  const { stack } = last().fields.error as { stack: string };
  assert.equal(stack.split('\n').length, 8);
  assert.doesNotMatch(stack, /deep inside/);
});

test('input of a client cannot make a line long or deep, and circular input is cut', () => {
  const { log, last } = capture();
  const circle: Record<string, unknown> = { name: 'circle' };
  circle.self = circle;
  const hostile = { agent: 'x'.repeat(1e6), list: Array(1e5).fill(1), circle, bytes: new Uint8Array(1e6) };
  log.info(hostile, 'y'.repeat(1e6));
  assert.ok(last().text.length < 10_000);
  const wide = Object.fromEntries(Array.from({ length: 1e4 }, (_, at) => [`field${at}`, 'x'.repeat(1e3)]));
  log.info({ wide, list: Array(1e4).fill(wide) }, 'called');
  assert.ok(last().text.length < 20_000);
  // A backtracking pattern would take minutes for each of these.
  for (const unit of ['://a:', 'eyJ', 'Bearer ', 'token', '"token"', '-----BEGIN ', 'authorization:']) {
    assertCheap(() => log.info({ agent: unit.repeat(1e5) }, unit.repeat(1e5)), unit);
  }
});
