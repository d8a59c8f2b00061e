import { create } from '@bufbuild/protobuf';
import { invalid, notFound } from '../../base/errors.ts';
import {
  ArchitecturesSchema,
  type GetArchitecturesRequest,
  type GetSizeRequest,
  ImagesService,
  SizeSchema,
} from '../../contract/gen/chainguard/platform/registry/v2/images_pb.js';
import type { Operation, Operations } from '../../resource/context.ts';
import type { Reader } from '../../store/store.ts';
import { type PlatformSize, platformsIn } from './content.ts';
import { digestRule } from './tags.ts';

const KIND = 'image';
const DEFAULT_ARCHITECTURE = 'amd64';
const FIND = 'SELECT platforms FROM manifest WHERE repo = $1 AND digest = $2';

/** Found out when the image was pushed, so that asking for it is one look-up. */
async function platformsOf(db: Reader, repo: string, digest: string): Promise<readonly PlatformSize[]> {
  const problem = digestRule(digest);
  if (problem) throw invalid('digest', problem);
  const row = await db.get<{ platforms: string }>(FIND, repo, digest);
  if (!row) throw notFound(KIND, digest);
  return platformsIn(row.platforms);
}

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
    if (!found) throw notFound(KIND, `${digest} for ${architecture}`);
    return create(SizeSchema, { size: BigInt(found.size), architecture });
  },
};

export const imageOperations: Operations = {
  [`${ImagesService.typeName}/${ImagesService.method.getArchitectures.name}`]: getArchitectures,
  [`${ImagesService.typeName}/${ImagesService.method.getSize.name}`]: getSize,
};
