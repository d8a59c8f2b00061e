import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Built } from './artifacts.ts';
import { NODE_VERSION } from './platforms.ts';
import type { Source } from './source.ts';

export interface Run {
  /** A URI that names the system that builds. Verifiers decide by it how far they trust the statement. */
  readonly builder: string;
  readonly started: Date;
  readonly finished: Date;
}

const sha256Of = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** The lines of SHA256SUMS, which `sha256sum --check` reads. */
export const checksumsOf = (files: readonly string[]): string =>
  files.map((file) => `${sha256Of(file)}  ${basename(file)}\n`).join('');

/** The statement of in-toto with the provenance (SLSA 1.0) of the files: from which commit and materials they are made. */
export function provenanceOf({ files, materials }: Built, source: Source, run: Run): string {
  return `${JSON.stringify(
    {
      _type: 'https://in-toto.io/Statement/v1',
      subject: files.map((file) => ({ name: basename(file), digest: { sha256: sha256Of(file) } })),
      predicateType: 'https://slsa.dev/provenance/v1',
      predicate: {
        buildDefinition: {
          buildType: 'https://wharfinger.dev/release/v1',
          externalParameters: { version: source.version, ref: `refs/tags/v${source.version}` },
          internalParameters: { node: NODE_VERSION },
          resolvedDependencies: [{ name: 'source', digest: { gitCommit: source.commit } }, ...materials],
        },
        runDetails: {
          builder: { id: run.builder },
          metadata: { startedOn: run.started.toISOString(), finishedOn: run.finished.toISOString() },
        },
      },
    },
    null,
    1,
  )}\n`;
}
