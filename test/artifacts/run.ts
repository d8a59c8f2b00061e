/**
 * Makes a release in a clone, and tries its artifacts: the npm package, the image under runc and in a registry, the archive, the systemd
 * unit, the Helm chart and the compose file. Run it with `npm run test:artifacts`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkArmArchive, runArchive, unpackArchive } from './archive.ts';
import { checkChart, checkChartReadme, runPod } from './chart.ts';
import { check } from './check.ts';
import { checkCompose } from './compose.ts';
import { checkArmImage, checkSbom, pushImage, runImage, unpackImage } from './image.ts';
import { checkOldNode, installPackage, runPackage } from './npm-package.ts';
import {
  checkDryRun,
  checkFailure,
  checkProvenance,
  checkRefusals,
  checkRelease,
  cloneForRelease,
  type Release,
} from './release.ts';
import { checkUnit, runUnit } from './unit.ts';

if (spawnSync('git', ['rev-parse', 'HEAD'], { cwd: import.meta.dirname }).status !== 0) {
  process.stdout.write('artifacts: SKIPPED, because this is not a clone of the repository\n');
  process.exit();
}
const scratch = mkdtempSync(join(tmpdir(), 'wharf-artifacts-'));
try {
  const release = cloneForRelease(scratch);
  await check('release refuses', () => checkRefusals(release));
  await check('dry run', () => checkDryRun(release));
  await check('failed build', () => checkFailure(release));
  if (await check('release', () => checkRelease(release))) await tryArtifacts(release);
} catch (error) {
  process.stdout.write(`artifacts: FAILED: ${(error as Error).stack}\n`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function tryArtifacts(release: Release): Promise<void> {
  await check('provenance', () => checkProvenance(release));

  const bin = installPackage(release, scratch);
  await check('npm package', () => runPackage(release, bin, scratch));
  await check('npm package: old Node', () => checkOldNode(bin, scratch));

  const layout = unpackImage(release, scratch);
  await check('image: SBOM', () => checkSbom(release, layout, scratch));
  await check('image: arm64', () => checkArmImage(layout, scratch));
  await check('image under runc', () => runImage(layout, scratch));
  await check('image in a registry', () => pushImage(release, scratch));

  const archive = unpackArchive(release, 'linux-x64', scratch);
  await check('archive', () => runArchive(release, archive, scratch));
  const armArchive = unpackArchive(release, 'linux-arm64', scratch);
  await check('archive: arm64', () => checkArmArchive(armArchive, scratch));

  await check('systemd unit', () => checkUnit(archive, scratch));
  await check('systemd unit under runc', () => runUnit(archive, scratch));

  await check('chart', () => checkChart(release, scratch));
  await check('pod of the chart under runc', () => runPod(release, layout, scratch));
  await check('chart: README', () => checkChartReadme(release));
  await check('compose file', () => checkCompose(release, scratch));
}
