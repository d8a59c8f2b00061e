import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readSbom } from './read-sbom.ts';

test('SPDX: packages, files, and relations in one direction', () => {
  const sbom = readSbom({
    spdxVersion: 'SPDX-2.2',
    SPDXID: 'DOC',
    name: 'image',
    documentDescribes: ['P'],
    creationInfo: { created: 'no time', creators: ['Tool: a', 'Person: b (b@example.com)', 'Organization: c', 7] },
    packages: [{ SPDXID: 'P', name: 'p', licenseDeclared: 'NONE', licenseConcluded: 'MIT', description: 'about' }],
    files: [{ SPDXID: 'F', fileName: '/etc/x', fileTypes: ['TEXT'] }],
    relationships: [
      { spdxElementId: 'F', relationshipType: 'CONTAINED_BY', relatedSpdxElement: 'P' },
      { spdxElementId: 'P', relationshipType: 'GENERATED_FROM', relatedSpdxElement: 'F' },
      { spdxElementId: 'P', relationshipType: 'COPY_OF', relatedSpdxElement: 'F' },
      { spdxElementId: 'P', relationshipType: 'constructor', relatedSpdxElement: 'F' },
      { relationshipType: 'CONTAINS', relatedSpdxElement: 'P' },
    ],
  });
  assert.deepEqual(sbom, {
    format: 'spdx',
    name: 'image',
    tools: ['a'],
    authors: ['b (b@example.com)', 'c'],
    created: undefined,
    packages: [{ id: 'P', name: 'p', version: '', license: 'MIT', description: 'about', purl: '' }],
    files: [{ id: 'F', name: '/etc/x', types: ['TEXT'] }],
    relations: [
      { from: 'DOC', type: 'describes', to: 'P' },
      { from: 'P', type: 'contains', to: 'F' },
      { from: 'P', type: 'generated from', to: 'F' },
    ],
  });
});

test('CycloneDX: components within components, licences in each of their forms, tools of either version', () => {
  const licenses = [{ license: { id: 'MIT' } }, { license: { name: 'Ours' } }, { expression: 'A OR B' }];
  const sbom = readSbom({
    bomFormat: 'CycloneDX',
    metadata: { tools: [{ name: 'old', version: '1' }], component: { name: 'image' }, authors: [{ email: 'a@b.c' }] },
    components: [
      {
        'bom-ref': '1',
        group: 'org',
        name: 'outer',
        version: '2',
        licenses,
        components: [{ 'bom-ref': '2', name: 'inner' }],
      },
      { 'bom-ref': '3', type: 'file', name: '/etc/x' },
    ],
    dependencies: [{ ref: '1', dependsOn: ['2'] }, { ref: '2' }],
  });
  assert.deepEqual(
    sbom?.packages.map(({ id, name, license }) => [id, name, license]),
    [
      ['1', 'org/outer', 'MIT AND Ours AND A OR B'],
      ['2', 'inner', ''],
    ],
  );
  assert.deepEqual([sbom?.tools, sbom?.authors, sbom?.name], [['old 1'], ['a@b.c'], 'image']);
  assert.deepEqual(sbom?.files, [{ id: '3', name: '/etc/x', types: [] }]);
  assert.deepEqual(sbom?.relations, [{ from: '1', type: 'depends on', to: '2' }]);
});

test('JSON of other formats is not an SBOM', () => {
  for (const json of [null, 7, 'x', [], {}, { spdxVersion: 'SPDX-3.0' }]) assert.equal(readSbom(json), undefined);
});

test('an SBOM with any values in its fields is read', () => {
  const parts = fc.dictionary(
    fc.constantFrom('packages', 'files', 'relationships', 'creationInfo', 'components', 'dependencies', 'metadata'),
    fc.jsonValue(),
  );
  const header = fc.constantFrom({ spdxVersion: 'SPDX-2.3' }, { bomFormat: 'CycloneDX' });
  fc.assert(
    fc.property(header, parts, (headerFields, fields) => readSbom({ ...fields, ...headerFields }) !== undefined),
    { seed: 7 },
  );
});

test('a component may contain very many components', () => {
  const components = [{ name: 'outer', components: Array.from({ length: 300_000 }, () => ({ name: 'inner' })) }];
  assert.equal(readSbom({ bomFormat: 'CycloneDX', components })?.packages.length, 300_001);
});

test('times that the API cannot express are ignored', () => {
  for (const created of ['+275760-09-13T00:00:00Z', '-000001-01-01T00:00:00Z', '10000-01-01']) {
    assert.equal(readSbom({ spdxVersion: 'SPDX-2.3', creationInfo: { created } })?.created, undefined, created);
  }
  const created = '2026-01-02T03:04:05Z';
  assert.equal(readSbom({ spdxVersion: 'SPDX-2.3', creationInfo: { created } })?.created, Date.parse(created));
});
