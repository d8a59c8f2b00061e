/**
 * Builds artifacts of the working tree into release/. Run it with `npm run artifacts`, or for some of them with
 * `npm run artifacts -- image archives`.
 */
import { relative } from 'node:path';
import { type ArtifactName, artifactNames, buildArtifacts } from './artifacts.ts';
import { readSource } from './source.ts';

const given = process.argv.slice(2);
const unknown = given.find((name) => !artifactNames.includes(name as ArtifactName));
if (unknown !== undefined) {
  process.stderr.write(`${unknown} is not an artifact. Artifacts are: ${artifactNames.join(', ')}\n`);
  process.exit(2);
}
const source = readSource();
try {
  await buildArtifacts(given.length > 0 ? (given as ArtifactName[]) : artifactNames, source, (file, bytes) =>
    process.stdout.write(`${relative(source.root, file)} (${(bytes / 1e6).toFixed(1)} MB)\n`),
  );
} catch (error) {
  process.stderr.write(`artifacts: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
