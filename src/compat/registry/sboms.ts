import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ApiError, Code, invalid } from '../../base/errors.ts';
import { mapInSlices, startSlices } from '../../base/slices.ts';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import {
  type ComponentGraph,
  ComponentGraph_Edge_Type,
  ComponentGraph_EdgeSchema,
  ComponentGraph_NodeSchema,
  ComponentGraphSchema,
  Sbom2_Source,
  Sbom2Schema,
} from '../../contract/gen/platform/tenant/v1/sbom.platform_pb.js';
import { type AttachedSbom, findSbom, requireSbom } from '../../domains/registry/images/sboms.ts';
import type { ReadBlob } from '../../domains/registry/manifests/read-blob.ts';
import type { Sbom, SbomRelation } from '../../formats/sbom/sbom.ts';
import { type Operations, type ReadContext, readOperation } from '../../resource/operation.ts';

const { method } = v1.Registry;

const edgeTypes: Readonly<Record<SbomRelation['type'], ComponentGraph_Edge_Type>> = {
  describes: ComponentGraph_Edge_Type.DESCRIBES,
  contains: ComponentGraph_Edge_Type.CONTAINS,
  'depends on': ComponentGraph_Edge_Type.DEPENDS_ON,
  'generated from': ComponentGraph_Edge_Type.GENERATED_FROM,
};

async function graphOf({ packages, files, relations }: Sbom): Promise<ComponentGraph> {
  const slices = startSlices();
  const packageNodes = await mapInSlices(
    packages,
    (value) => create(ComponentGraph_NodeSchema, { typedNode: { case: 'package', value: { ...value } } }),
    slices,
  );
  const fileNodes = await mapInSlices(
    files,
    ({ id, name, types }) =>
      create(ComponentGraph_NodeSchema, { typedNode: { case: 'file', value: { id, name, types: [...types] } } }),
    slices,
  );
  const edges = await mapInSlices(
    relations,
    ({ from, type, to }) =>
      create(ComponentGraph_EdgeSchema, { subjectId: from, type: edgeTypes[type], predicateId: to }),
    slices,
  );
  return create(ComponentGraphSchema, { nodes: [...packageNodes, ...fileNodes], edges });
}

const sbomOf = async ({ digest, subject, bytes, content }: AttachedSbom) =>
  create(Sbom2Schema, {
    id: digest,
    rawSbom: bytes,
    source: Sbom2_Source.INGESTED,
    digest: subject,
    ...(content && {
      graph: await graphOf(content),
      format: content.format,
      name: content.name,
      tool: content.tools.join(', '),
      authors: content.authors.join(', '),
      ...(content.created !== undefined && { generatedAt: timestampFromMs(content.created) }),
    }),
  });

/** The SBOM of each image is read from a file. */
const MAX_IMAGES = 20;

async function metadataOf(
  { db }: ReadContext,
  readBlob: ReadBlob,
  repo: string,
  { digest, arch }: { readonly digest: string; readonly arch: string },
) {
  try {
    const sbom = await findSbom({ db, readBlob }, repo, digest, arch);
    const packages = sbom?.content?.packages.filter(({ purl }) => purl !== '') ?? [];
    return { digest, pkgMetadata: packages.map(({ purl, license }) => ({ purl, license })) };
  } catch (error) {
    if (error instanceof ApiError && error.code === Code.NOT_FOUND) return undefined;
    throw error;
  }
}

export const sbomOperations = (readBlob: ReadBlob): Operations => ({
  ...readOperation(method.getSbom, async ({ db }, { repoId, digest, arch }) =>
    sbomOf(await requireSbom({ db, readBlob }, repoId, digest, arch)),
  ),
  ...readOperation(method.getRawSbom, async ({ db }, { repoId, digest, arch }) => {
    const { bytes } = await requireSbom({ db, readBlob }, repoId, digest, arch);
    return create(v1.RawSbomSchema, { rawSbom: bytes.toString('utf8') });
  }),
  // Returns the packages of images by their SBOMs. Images that do not exist are left out.
  ...readOperation(method.listManifestMetadata, async (ctx, { repoId, items }) => {
    if (items.length > MAX_IMAGES) throw invalid('items', `must have at most ${MAX_IMAGES} items`);
    const found = [];
    for (const { filter } of items) {
      const image = filter.case === 'indexFilter' ? filter.value : { digest: filter.value ?? '', arch: '' };
      const metadata = await metadataOf(ctx, readBlob, repoId, image);
      if (metadata) found.push(metadata);
    }
    return create(v1.ManifestMetadataListSchema, { items: found });
  }),
});
