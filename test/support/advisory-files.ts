import { ADVISORY_ID_ALPHABET, formatAdvisoryId } from '../../src/formats/advisories/advisory-id.ts';

/** The YAML files of a whole distribution, by name: `count` advisories spread over `files` packages. */
export function* advisoryFiles(count: number, files: number): Generator<[name: string, text: string]> {
  let made = 0;
  for (let file = 0; file < files; file++) {
    const end = Math.floor((count * (file + 1)) / files);
    const advisories: string[] = [];
    for (; made < end; made++) advisories.push(advisory(made, `package-${file}`));
    const head = `schema-version: 2.0.2\n\npackage:\n  name: package-${file}\n\nadvisories:\n`;
    yield [`package-${file}.advisories.yaml`, head + advisories.join('\n')];
  }
}

const advisoryId = (number: number): string =>
  formatAdvisoryId(
    (place) => Math.floor(number / ADVISORY_ID_ALPHABET.length ** (11 - place)) % ADVISORY_ID_ALPHABET.length,
  );

/** What became of a finding, as often as in the public database. */
const endings = [
  ...Array(7).fill('        type: fixed\n        data:\n          fixed-version: 1.2.3-r1\n'),
  '        type: false-positive-determination\n        data:\n          type: component-vulnerability-mismatch\n          note: Another curl.\n',
  '        type: pending-upstream-fix\n        data:\n          note: |\n            It needs a newer library,\n            which upstream has not taken in.\n',
  '        type: fix-not-planned\n        data:\n          note: The package is going away.\n',
];

const advisory = (number: number, name: string): string => `  - id: ${advisoryId(number)}
    aliases:
      - CVE-2024-${10_000 + number}
      - GHSA-${String(number).padStart(4, '2')}-vvvv-wwww
    events:
      - timestamp: 2024-05-07T19:43:55Z
        type: detection
        data:
          type: scan/v1
          data:
            subpackageName: ${name}-compat
            componentID: ${number.toString(16).padStart(16, '0')}
            componentName: golang.org/x/net
            componentVersion: v0.17.0
            componentType: go-module
            componentLocation: /usr/bin/${name}
            scanner: grype
      - timestamp: 2024-05-08T09:00:00Z
${endings[number % endings.length]}`;
