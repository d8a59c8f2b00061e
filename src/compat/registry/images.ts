import { create } from '@bufbuild/protobuf';
import { ImagesService } from '../../contract/gen/chainguard/platform/registry/v2/images_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { requireChart, requireImageConfig } from '../../domains/registry/images/image-config.ts';
import type { ReadContent } from '../../domains/registry/manifests/blob-content.ts';
import { countManifests } from '../../domains/registry/manifests/digest-count.ts';
import { objectIn, objectsIn, textIn, textMapIn, textsIn } from '../../formats/lenient.ts';
import type { Operation, Operations } from '../../resource/operation.ts';
import { adapt, idOf } from '../adapt.ts';

const { method } = v1.Registry;

const fields = { repo_uid: 'repo_id', architecture: 'arch' };

/** Names without anything to say about them. */
const asSet = (value: unknown): Record<string, object> =>
  Object.fromEntries(Object.keys(objectIn(value)).map((name) => [name, {}]));

/** In the words of the OCI image specification, section "Image Configuration". */
const getImageConfig = (read: ReadContent): Operation => ({
  mode: 'read',
  async run({ db }, request) {
    const { repoId, digest, arch } = request as v1.ImageConfigRequest;
    const config = await requireImageConfig({ db, read }, repoId, digest, arch);
    return create(v1.ImageConfigSchema, {
      user: textIn(config.User),
      exposedPorts: asSet(config.ExposedPorts),
      env: textsIn(config.Env),
      entrypoint: textsIn(config.Entrypoint),
      cmd: textsIn(config.Cmd),
      volumes: asSet(config.Volumes),
      workingDir: textIn(config.WorkingDir),
      labels: textMapIn(config.Labels),
      stopSignal: textIn(config.StopSignal),
    });
  },
});

/** In the words of Helm's `Chart.yaml`. Which images a chart uses is in its templates, which nobody runs here. */
const getChart = (read: ReadContent): Operation => ({
  mode: 'read',
  async run({ db }, request) {
    const { repoId, digest } = request as v1.GetChartRequest;
    const chart = await requireChart({ db, read }, repoId, digest);
    return create(v1.ChartSchema, {
      name: textIn(chart.name),
      version: textIn(chart.version),
      appVersion: textIn(chart.appVersion),
      description: textIn(chart.description),
      dependencies: objectsIn(chart.dependencies).map(({ name, version, repository }) => ({
        name: textIn(name),
        version: textIn(version),
        repository: textIn(repository),
      })),
      annotations: textMapIn(chart.annotations),
      raw: JSON.stringify(chart),
    });
  },
});

const getManifestDigestCount: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { parentId } = request as v1.ManifestDigestCountFilter;
    return create(v1.ManifestDigestCountSchema, { count: BigInt(await countManifests(db, parentId)) });
  },
};

export const imageOperations = (operations: Operations, read: ReadContent): Operations => ({
  ...adapt(operations, method.getArchs, ImagesService.method.getArchitectures, {
    request: ({ repoId, digest }) => ({ repoUid: repoId, digest }),
    response: ({ architectures }) => ({ archs: architectures }),
    fields,
  }),
  ...adapt(operations, method.getSize, ImagesService.method.getSize, {
    request: ({ repoId, digest, arch }) => ({ repoUid: repoId, digest, architecture: arch }),
    response: ({ size, architecture }) => ({ size, arch: architecture }),
    fields,
  }),
  [idOf(method.getImageConfig)]: getImageConfig(read),
  [idOf(method.getChart)]: getChart(read),
  [idOf(method.getManifestDigestCount)]: getManifestDigestCount,
});
