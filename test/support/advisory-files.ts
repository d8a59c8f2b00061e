import { ADVISORY_ID_ALPHABET, formatAdvisoryId } from '../../src/formats/advisories/advisory-id.ts';

/** Yields YAML files as [name, text]: `count` advisories spread over `files` packages, one file for each package. */
export function* advisoryFiles(count: number, files: number): Generator<[name: string, text: string]> {
  let written = 0;
  for (let file = 0; file < files; file++) {
    const end = Math.floor((count * (file + 1)) / files);
    const advisories: string[] = [];
    for (; written < end; written++) advisories.push(advisory(written, `package-${file}`));
    const head = `schema-version: 2.0.2\n\npackage:\n  name: package-${file}\n\nadvisories:\n`;
    yield [`package-${file}.advisories.yaml`, head + advisories.join('\n')];
  }
}

const ALPHABET_SIZE = ADVISORY_ID_ALPHABET.length;

const advisoryId = (number: number): string =>
  formatAdvisoryId((at) => Math.floor(number / ALPHABET_SIZE ** (11 - at)) % ALPHABET_SIZE);

/** The last event of an advisory. The types are as frequent as in the public database. */
const lastEvents = [
  ...Array(7).fill('        type: fixed\n        data:\n          fixed-version: 1.2.3-r1\n'),
  '        type: false-positive-determination\n        data:\n          type: component-vulnerability-mismatch\n          note: Another package named curl.\n',
  '        type: pending-upstream-fix\n        data:\n          note: |\n            It needs a newer library,\n            which upstream does not use yet.\n',
  '        type: fix-not-planned\n        data:\n          note: The package will be removed.\n',
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
${lastEvents[number % lastEvents.length]}`;
