import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Material } from './material.ts';
import { NODE_VERSION, type Platform } from './platforms.ts';
import { run } from './run.ts';
import type { Source } from './source.ts';

export interface NodeRuntime {
  readonly version: string;
  readonly program: Buffer;
  readonly licence: Buffer;
  readonly material: Material;
}

/**
 * Returns Node for a platform, from npm. The package is downloaded once and must have the integrity in platforms.ts, so
 * a release does not depend on the Node of the build machine, nor on what the registry answers.
 */
export function nodeRuntimeFor(platform: Platform, source: Source): NodeRuntime {
  const name = `node-${platform.name}`;
  const directory = join(source.cacheDirectory, `${name}-${NODE_VERSION}`);
  const tarball = join(source.cacheDirectory, `${name}-${NODE_VERSION}.tgz`);
  mkdirSync(source.cacheDirectory, { recursive: true });
  if (!existsSync(tarball) || integrityOf(tarball) !== platform.nodeIntegrity) {
    // Files of another package must not stay.
    rmSync(directory, { recursive: true, force: true });
    run(
      'npm',
      ['pack', '--silent', '--pack-destination', source.cacheDirectory, `${name}@${NODE_VERSION}`],
      source.root,
    );
    const found = integrityOf(tarball);
    if (found !== platform.nodeIntegrity) {
      throw new Error(
        `${name}@${NODE_VERSION} has the integrity ${found}, but tools/release/platforms.ts has another one`,
      );
    }
  }
  if (!existsSync(join(directory, 'LICENSE'))) {
    mkdirSync(directory, { recursive: true });
    run(
      'tar',
      ['-xzf', tarball, '-C', directory, '--strip-components=1', 'package/bin/node', 'package/LICENSE'],
      source.root,
    );
  }
  return {
    version: NODE_VERSION,
    program: readFileSync(join(directory, 'bin/node')),
    licence: readFileSync(join(directory, 'LICENSE')),
    material: {
      uri: `pkg:npm/${name}@${NODE_VERSION}`,
      digest: { sha512: Buffer.from(platform.nodeIntegrity.slice('sha512-'.length), 'base64').toString('hex') },
    },
  };
}

const integrityOf = (file: string): string =>
  `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
