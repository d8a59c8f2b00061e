import { create } from '@bufbuild/protobuf';
import { notFound } from '../../../base/errors.ts';
import {
  ArchitecturesSchema,
  ImagesService,
  SizeSchema,
} from '../../../contract/gen/chainguard/platform/registry/v2/images_pb.js';
import { type Operations, readOperation } from '../../../resource/operation.ts';
import { DEFAULT_ARCHITECTURE, requirePlatforms } from './platforms.ts';

const { getArchitectures, getSize } = ImagesService.method;

export const imageOperations: Operations = {
  ...readOperation(getArchitectures, async ({ db }, { repoUid, digest }) => {
    const platforms = await requirePlatforms(db, repoUid, digest);
    return create(ArchitecturesSchema, {
      architectures: [...new Set(platforms.map(({ architecture }) => architecture))].sort(),
    });
  }),
  ...readOperation(getSize, async ({ db }, request) => {
    const { repoUid, digest } = request;
    const architecture = request.architecture || DEFAULT_ARCHITECTURE;
    const platforms = await requirePlatforms(db, repoUid, digest);
    // Of several variants of an architecture, a client that names none pulls the first.
    const platform = platforms.find((each) => each.architecture === architecture);
    if (!platform) throw notFound('image', `${digest} for ${architecture}`);
    return create(SizeSchema, { size: BigInt(platform.size), architecture });
  }),
};
