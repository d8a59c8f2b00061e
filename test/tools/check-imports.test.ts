import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';

const script = join(import.meta.dirname, '../../tools/check-imports.ts');

/** Runs the check on a directory with these files. */
function runCheck(t: TestContext, files: Record<string, string>): { status: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), 'wharfinger-imports-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const { status, stderr } = spawnSync(process.execPath, [script, root], { encoding: 'utf8' });
  return { status, lines: stderr.split('\n').filter((line) => line !== '') };
}

test('imports of lower layers pass', (t) => {
  const result = runCheck(t, {
    'src/main.ts': `import { x } from './cli/serve.ts';\nimport 'node:http';`,
    'src/cli/serve.ts': `import { main } from '../main.ts';\nawait import('../transport/listener.ts');`,
    'src/transport/listener.ts': `import net from 'node:net';\nimport type { Call } from '../pipeline/call.ts';`,
    'src/pipeline/call.ts': `export * from '../identity/token.ts';\nimport { invalid } from '../base/errors.ts';`,
    'src/identity/token.ts': `import {\n  has,\n  union,\n} from '../access/capabilities.ts';`,
    'src/base/version.ts': `import manifest from '../../package.json' with { type: 'json' };`,
    'src/store/store.test.ts': `import { facts } from '../../test/data/facts.ts';`,
    'src/tracing/otlp.ts': `import { trace } from '@opentelemetry/api';\nimport './sampler.ts';`,
    'src/config.ts': `await import('./tracing/otlp.ts');`,
  });
  assert.deepEqual(result, { status: 0, lines: [] });
});

test('each import of a layer that is not below is reported', (t) => {
  const result = runCheck(t, {
    'src/base/errors.ts': `import type { Call } from '../pipeline/call.ts';`,
    'src/domains/iam/groups.ts': `export {\n  has,\n} from '../../access/capabilities.ts';`,
    'src/oci/blobs.ts': `await import('../transport/listener.ts');`,
    'src/pipeline/call.ts': `import { createServer } from 'node:http';\nimport { Server } from '@grpc/grpc-js';`,
    'src/resource/read.ts': `import { request } from '../base/node-http.ts';`,
    'src/store/store.ts': `import '../../test/data/facts.ts';`,
    'src/main.ts': `import './tracing/otlp.ts';\nimport { trace } from '@opentelemetry/api';`,
    'src/other/file.ts': '',
  });
  assert.equal(result.status, 1);
  assert.deepEqual(result.lines, [
    'src/base/errors.ts: layer base must not import layer pipeline (../pipeline/call.ts)',
    'src/domains/iam/groups.ts: layer domains must not import layer access (../../access/capabilities.ts)',
    'src/main.ts: layer main must not import layer tracing statically (./tracing/otlp.ts)',
    'src/main.ts: layer main must not import layer tracing (@opentelemetry/api)',
    'src/oci/blobs.ts: layer oci must not import layer transport (../transport/listener.ts)',
    'src/other/file.ts: other is not a layer; tools/check-imports.ts lists them',
    'src/pipeline/call.ts: layer pipeline must not import layer network (node:http)',
    'src/pipeline/call.ts: layer pipeline must not import layer network (@grpc/grpc-js)',
    'src/resource/read.ts: layer resource must not import layer network (../base/node-http.ts)',
    'src/store/store.ts: layer store must not import layer test (../../test/data/facts.ts)',
  ]);
});
