import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { version } from '../../base/version.ts';
import { banner, commandOf } from './banner.ts';
import { startFailureMessage } from './run-server.ts';

const uid = 'f'.repeat(40);
const started = {
  url: 'http://127.0.0.1:8080',
  localUrl: 'http://127.0.0.1:8080',
  organization: { uid, name: 'my-org' },
  firstStart: true,
  data: resolve('data'),
};

test('the banner names address, version and organization, and three commands to paste', () => {
  const text = banner(started, 'npm run -s wharf --');
  assert.ok(text.includes(`Wharfinger ${version} serves http://127.0.0.1:8080\n`));
  assert.ok(text.includes(`Organization my-org (${uid}), created by this start\n`));
  assert.doesNotMatch(banner({ ...started, firstStart: false }, 'wharf'), /created/);
  const commands = text.split('\n').filter((line) => line.startsWith('  '));
  assert.deepEqual(commands, [
    '  TOKEN=$(npm run -s wharf -- auth token)',
    '  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/iam/v2/groups',
    `  curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"name":"my-group"}' http://127.0.0.1:8080/iam/v2/groups/${uid}`,
  ]);
});

test('the pasted command names a data directory that is not the default, quoted for the shell', () => {
  assert.match(banner({ ...started, data: '/srv/wharf' }, 'wharf'), /auth token --data \/srv\/wharf\)/);
  assert.match(
    banner({ ...started, data: "/srv/o'hara $HOME" }, 'wharf'),
    /auth token --data '\/srv\/o'\\''hara \$HOME'\)/,
  );
});

test('the pasted command is the one that this program was started by', () => {
  assert.equal(commandOf({ npm_lifecycle_event: 'start' }), 'npm run -s wharf --');
  assert.equal(commandOf({ npm_lifecycle_event: 'npx' }), 'npx wharfinger');
  assert.equal(commandOf({}), 'wharf');
});

const failure = (fields: object, message = 'failed'): Error => Object.assign(new Error(message), fields);
const config = { listen: { host: '127.0.0.1', port: 8080 }, databaseUrl: undefined };

test('a failed start says which setting to change', () => {
  const used = failure({ code: 'EADDRINUSE', syscall: 'listen' });
  assert.match(startFailureMessage(used, config), /^port 8080 is used by another program.*WHARF_LISTEN/);

  const foreign = failure({ code: 'EADDRNOTAVAIL', syscall: 'listen' });
  assert.match(
    startFailureMessage(foreign, config),
    /^cannot listen at 127\.0\.0\.1:8080 \(EADDRNOTAVAIL\).*WHARF_LISTEN/,
  );

  const unknown = failure({ code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: 'wharf.invalid' });
  assert.match(
    startFailureMessage(unknown, { ...config, listen: { host: 'wharf.invalid', port: 80 } }),
    /WHARF_LISTEN/,
  );

  const refused = failure({ code: 'ECONNREFUSED' }, 'connect ECONNREFUSED 10.0.0.1:5432');
  const unreachable = new Error('Unavailable: no connection', { cause: new AggregateError([refused]) });
  assert.equal(
    startFailureMessage(unreachable, { ...config, databaseUrl: 'postgres://u:hunter2@db/x' }),
    'cannot reach the database: Unavailable: no connection (connect ECONNREFUSED 10.0.0.1:5432): check WHARF_DATABASE_URL',
  );

  assert.equal(startFailureMessage(new Error('disk\n  full'), config), 'cannot start: disk full');
});
