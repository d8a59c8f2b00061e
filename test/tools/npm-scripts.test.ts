import assert from 'node:assert/strict';
import { test } from 'node:test';
import packageJson from '../../package.json' with { type: 'json' };

test('no npm script runs node in the shell that has run ensure-installed', () => {
  const scripts = Object.entries(packageJson.scripts).filter(([, script]) => script.includes('ensure-installed'));
  assert.ok(scripts.length > 0);
  for (const [name, script] of scripts)
    assert.match(
      script,
      /^node tools\/ensure-installed\.mjs( tools\/\S+)?$/,
      `${name}: the shell remembers the old node`,
    );
});
