import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RegistryError } from '../errors.ts';
import { isForeignLayer, parseManifest, parsePushedManifest } from './manifest.ts';

const OCI = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const DOCKER = 'application/vnd.docker.distribution.manifest.v2+json';
const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const ARTIFACT = 'application/vnd.oci.artifact.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';

const digest = `sha256:${'a'.repeat(64)}`;
const blob = { mediaType: 'application/x', digest, size: 7 };
const image = { schemaVersion: 2, mediaType: OCI, config: { ...blob, mediaType: CONFIG }, layers: [blob, blob] };

const parse = (value: unknown, contentType = '') => parseManifest(Buffer.from(JSON.stringify(value)), contentType);

const isInvalid = (error: unknown): boolean => error instanceof RegistryError && error.code === 'MANIFEST_INVALID';

test('reads images, indexes and artifacts of OCI and Docker', () => {
  assert.equal(parse(image).kind, 'image');
  assert.equal(parse({ ...image, mediaType: undefined }, DOCKER).kind, 'image');
  assert.equal(parse({ schemaVersion: 2, manifests: [blob] }, INDEX).kind, 'index');
  assert.equal(parse({ schemaVersion: 2, mediaType: DOCKER_LIST, manifests: [] }).kind, 'index');
  assert.equal(parse({ mediaType: ARTIFACT, blobs: [blob] }).layers.length, 1);
  assert.equal(parse(image).config?.mediaType, CONFIG);
  assert.equal(parse(image).layers.length, 2);
});

test('the type of an artifact is its artifactType, or the media type of its config', () => {
  assert.equal(parse({ ...image, artifactType: 'application/sbom' }).artifactType, 'application/sbom');
  assert.equal(parse(image).artifactType, CONFIG);
  assert.equal(parse({ schemaVersion: 2, mediaType: INDEX, manifests: [] }).artifactType, undefined);
});

test('reads the subject and the annotations', () => {
  const { subject, annotations } = parse({ ...image, subject: blob, annotations: { a: 'b' } });
  assert.equal(subject, digest);
  assert.deepEqual(annotations, { a: 'b' });
});

test('recognizes the foreign layers of OCI and Docker', () => {
  const layer = (mediaType: string) => ({ ...blob, mediaType, platform: undefined });
  assert.ok(isForeignLayer(layer('application/vnd.docker.image.rootfs.foreign.diff.tar.gzip')));
  assert.ok(isForeignLayer(layer('application/vnd.oci.image.layer.nondistributable.v1.tar+zstd')));
  assert.ok(!isForeignLayer(layer('application/vnd.oci.image.layer.v1.tar')));
});

const wrong: Readonly<Record<string, unknown>> = {
  'a list': [],
  'a string': 'manifest',
  null: null,
  'no media type': { ...image, mediaType: undefined },
  'an unknown media type': { ...image, mediaType: 'application/json' },
  'the name of a property of every object': { ...image, mediaType: 'constructor' },
  'schema 1': { ...image, schemaVersion: 1 },
  'no config': { ...image, config: undefined },
  'layers that are no list': { ...image, layers: {} },
  'a layer without a digest': { ...image, layers: [{ ...blob, digest: undefined }] },
  'a digest with a path in it': { ...image, layers: [{ ...blob, digest: 'sha256:../../etc/passwd' }] },
  'a negative size': { ...image, layers: [{ ...blob, size: -1 }] },
  'half a byte': { ...image, layers: [{ ...blob, size: 0.5 }] },
  'a size beyond the safe integers': { ...image, layers: [{ ...blob, size: 1e300 }] },
  'a media type of two lines': { ...image, layers: [{ ...blob, mediaType: 'a\nb' }] },
  'too many layers': { ...image, layers: Array(5001).fill(blob) },
  'an annotation that is no string': { ...image, annotations: { a: 1 } },
  'a subject that is no descriptor': { ...image, subject: digest },
  'both an image and an index': { ...image, manifests: [] },
  'an index with layers': { schemaVersion: 2, mediaType: INDEX, manifests: [], layers: [] },
};

for (const [what, value] of Object.entries(wrong)) {
  test(`refuses ${what}`, () => {
    assert.throws(() => parse(value), isInvalid);
  });
}

test('refuses a manifest that does not match its content type', () => {
  assert.throws(() => parse(image, DOCKER), isInvalid);
  assert.throws(() => parseManifest(Buffer.from([0xff, 0xfe]), OCI), isInvalid);
  assert.throws(() => parseManifest(Buffer.from('{'), OCI), isInvalid);
});

test('refuses JSON that is nested too deeply, but not brackets in strings', () => {
  const deep = (text: string) => Buffer.from(JSON.stringify(image).replace(/}$/, `,"x":${text}}`));
  assert.throws(() => parseManifest(deep('['.repeat(1000) + ']'.repeat(1000)), OCI), isInvalid);
  assert.throws(() => parseManifest(deep('{"a":'.repeat(100_000)), OCI), isInvalid);
  parseManifest(deep(JSON.stringify('['.repeat(1000))), OCI);
  parseManifest(deep(JSON.stringify('"\\'.repeat(1000))), OCI);
});

test('any bytes are parsed or refused with MANIFEST_INVALID', () => {
  const almost = fc.record({ mediaType: fc.constantFrom(OCI, INDEX, ARTIFACT), schemaVersion: fc.constant(2) });
  const json = fc.tuple(almost, fc.dictionary(fc.constantFrom('config', 'layers', 'manifests', 'x'), fc.jsonValue()));
  const texts = json.map(([a, b]) => Buffer.from(JSON.stringify({ ...a, ...b })));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), texts), fc.constantFrom('', OCI), (bytes, contentType) => {
      try {
        parseManifest(bytes, contentType);
      } catch (error) {
        assert.ok(isInvalid(error), String(error));
      }
    }),
    { seed: 5, numRuns: 1000 },
  );
});

test('reads the config of an image only, and takes the platform from it', async () => {
  const requested: unknown[] = [];
  const read = (manifest: unknown, config?: string) =>
    parsePushedManifest({ digest, mediaType: '', bytes: Buffer.from(JSON.stringify(manifest)) }, async (descriptor) => {
      requested.push(descriptor.digest);
      return config === undefined ? undefined : Buffer.from(config);
    });
  const arm = '{"os":"linux","architecture":"arm","variant":"v7"}';
  assert.deepEqual((await read(image, arm)).platform, { os: 'linux', architecture: 'arm', variant: 'v7' });
  for (const odd of [
    undefined,
    '',
    'no json',
    '[]',
    '{"os":1,"architecture":"arm"}',
    '{"os":"a b","architecture":"x"}',
  ]) {
    assert.equal((await read(image, odd)).platform, undefined);
  }
  assert.equal((await read(image, '{"os":"unknown","architecture":"unknown"}')).platform, undefined);
  requested.length = 0;
  await read({ ...image, config: blob }, arm);
  await read({ ...image, config: { ...image.config, size: 1e9 } }, arm);
  await read({ mediaType: ARTIFACT, blobs: [] }, arm);
  assert.deepEqual(requested, []);
});
