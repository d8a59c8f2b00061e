import { create } from '@bufbuild/protobuf';
import { ImagesService } from '../../contract/gen/chainguard/platform/registry/v2/images_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { requireChart, requireImageConfig } from '../../domains/registry/images/image-config.ts';
import { countManifests } from '../../domains/registry/manifests/count-manifests.ts';
import type { ReadBlob } from '../../domains/registry/manifests/read-blob.ts';
import { readChartImages } from '../../formats/charts/chart-images.ts';
import { objectIn, objectsIn, textIn, textMapIn, textsIn } from '../../formats/lenient-json.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';

const { method } = v1.Registry;

const v1FieldNames = { repo_uid: 'repo_id', architecture: 'arch' };

/** The keys of an OCI set, which is an object whose values are empty objects. */
const toEmptyMessages = (value: unknown): Record<string, object> =>
  Object.fromEntries(Object.keys(objectIn(value)).map((name) => [name, {}]));

/** Maps the fields of the OCI image specification, section "Image Configuration". */
const getImageConfig = (readBlob: ReadBlob): Operations =>
  readOperation(method.getImageConfig, async ({ db }, { repoId, digest, arch }) => {
    const config = await requireImageConfig({ db, readBlob }, repoId, digest, arch);
    return create(v1.ImageConfigSchema, {
      user: textIn(config.User),
      exposedPorts: toEmptyMessages(config.ExposedPorts),
      env: textsIn(config.Env),
      entrypoint: textsIn(config.Entrypoint),
      cmd: textsIn(config.Cmd),
      volumes: toEmptyMessages(config.Volumes),
      workingDir: textIn(config.WorkingDir),
      labels: textMapIn(config.Labels),
      stopSignal: textIn(config.StopSignal),
    });
  });

/** Maps the fields of Helm's `Chart.yaml`. The images are those that its annotations list. */
const getChart = (readBlob: ReadBlob): Operations =>
  readOperation(method.getChart, async ({ db }, { repoId, digest }) => {
    const chart = await requireChart({ db, readBlob }, repoId, digest);
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
      images: (await readChartImages(chart)).map(({ name, image, isOptional }) => ({
        name,
        image,
        requirement: isOptional
          ? v1.ChartImageRequirement.REQUIREMENT_OPTIONAL
          : v1.ChartImageRequirement.REQUIREMENT_REQUIRED,
      })),
      raw: JSON.stringify(chart),
    });
  });

export const imageOperations = (operations: Operations, readBlob: ReadBlob): Operations => ({
  ...adapt(operations, method.getArchs, ImagesService.method.getArchitectures, {
    request: ({ repoId, digest }) => ({ repoUid: repoId, digest }),
    response: ({ architectures }) => ({ archs: architectures }),
    v1FieldNames,
  }),
  ...adapt(operations, method.getSize, ImagesService.method.getSize, {
    request: ({ repoId, digest, arch }) => ({ repoUid: repoId, digest, architecture: arch }),
    response: ({ size, architecture }) => ({ size, arch: architecture }),
    v1FieldNames,
  }),
  ...getImageConfig(readBlob),
  ...getChart(readBlob),
  ...readOperation(method.getManifestDigestCount, async ({ db }, { parentId }) =>
    create(v1.ManifestDigestCountSchema, { count: BigInt(await countManifests(db, parentId)) }),
  ),
});
