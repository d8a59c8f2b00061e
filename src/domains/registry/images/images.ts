import { create } from '@bufbuild/protobuf';
import { notFound } from '../../../base/errors.ts';
import {
  ArchitecturesSchema,
  type GetArchitecturesRequest,
  type GetSizeRequest,
  ImagesService,
  SizeSchema,
} from '../../../contract/gen/chainguard/platform/registry/v2/images_pb.js';
import type { Operation, Operations } from '../../../resource/operation.ts';
import { DEFAULT_ARCHITECTURE, platformsOf } from './platforms.ts';

const getArchitectures: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { repoUid, digest } = request as GetArchitecturesRequest;
    const platforms = await platformsOf(db, repoUid, digest);
    return create(ArchitecturesSchema, {
      architectures: [...new Set(platforms.map(({ architecture }) => architecture))].sort(),
    });
  },
};

const getSize: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { repoUid, digest, architecture: asked } = request as GetSizeRequest;
    const architecture = asked || DEFAULT_ARCHITECTURE;
    const platforms = await platformsOf(db, repoUid, digest);
    // Variants of one architecture: the first is what a client that names no variant takes.
    const found = platforms.find((platform) => platform.architecture === architecture);
    if (!found) throw notFound('image', `${digest} for ${architecture}`);
    return create(SizeSchema, { size: BigInt(found.size), architecture });
  },
};

export const imageOperations: Operations = {
  [`${ImagesService.typeName}/${ImagesService.method.getArchitectures.name}`]: getArchitectures,
  [`${ImagesService.typeName}/${ImagesService.method.getSize.name}`]: getSize,
};
