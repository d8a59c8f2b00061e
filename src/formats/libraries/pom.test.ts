import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { zipOf } from '../../../test/support/archives.ts';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { readMavenVersion } from './maven-version.ts';
import { readPom } from './pom.ts';

const pom = (inside: string, prolog = '<?xml version="1.0" encoding="UTF-8"?>'): string =>
  `${prolog}<project xmlns="http://maven.apache.org/POM/4.0.0">${inside}</project>`;
const read = (text: string, encoding: BufferEncoding = 'utf8') => readPom(Buffer.from(text, encoding));
const says = (pattern: RegExp) => (error: unknown) =>
  error instanceof UnreadableFileError && pattern.test(error.message);

const FULL = `<groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>2.0.9</version>
  <name>API</name><description>The <![CDATA[<slf4j>]]> API &amp; more</description>
  <dependencies><dependency><groupId>a</groupId><artifactId>b</artifactId><version>1</version></dependency></dependencies>`;

test('the properties of a POM are read', () => {
  const expected = { groupId: 'org.slf4j', artifactId: 'slf4j-api', version: '2.0.9' };
  assert.deepEqual(read(pom(FULL)), { ...expected, description: 'The <slf4j> API & more' });
  assert.equal(read(pom('<artifactId>a</artifactId><name>\n A &oslash; </name>')).description, 'A &oslash;');
});

test('a POM inherits group and version from its parent', () => {
  const parent = '<parent><groupId>org.p</groupId><artifactId>p</artifactId><version>7</version></parent>';
  assert.deepEqual(read(pom(`${parent}<artifactId>child</artifactId>`)), {
    groupId: 'org.p',
    artifactId: 'child',
    version: '7',
    description: '',
  });
  assert.equal(read(pom(`<artifactId>child</artifactId><version>8</version>${parent}`)).version, '8');
});

test('a POM may have another encoding than UTF-8', () => {
  const prolog = '<?xml version="1.0" encoding="ISO-8859-1"?>';
  assert.equal(read(pom('<artifactId>a</artifactId><name>für</name>', prolog), 'latin1').description, 'für');
  assert.throws(() => read(pom('<name>für</name>'), 'latin1'), says(/^is not valid UTF-8$/));
  assert.throws(() => read(pom('', '<?xml version="1.0" encoding="klingon"?>')), says(/^is not valid klingon$/));
});

test('a POM with a million nested elements is read in linear time', { timeout: 20_000 }, () => {
  const nested = `${'<a>'.repeat(190)}${'<b/>'.repeat(1_000_000)}${'</a>'.repeat(190)}`;
  assert.equal(read(pom(`${nested}<artifactId>a</artifactId>`)).artifactId, 'a');
});

test('files that are not POMs are refused, and entities are not expanded', () => {
  assert.throws(() => read('hello'), says(/^is not well-formed XML/));
  assert.throws(() => read('<project><artifactId>a</project>'), says(/^is not well-formed XML/));
  assert.throws(() => read('<html/>'), says(/has no artifactId$/));
  assert.throws(() => read('<a>'.repeat(300)), says(/nested more than 200 levels/));
  const bomb = '<!DOCTYPE p [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>';
  assert.equal(read(pom('<artifactId>a</artifactId><name>&b;&x;</name>', bomb)).description, '&b;&x;');
});

/** Creates the directory of a version with these files. */
function layout(t: TestContext, path: string, files: Readonly<Record<string, string | Buffer>>) {
  const root = mkdtempSync(join(tmpdir(), 'wharf-maven-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const directory = join(root, path);
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(directory, name), content);
    utimesSync(join(directory, name), 1_600_000_000, 1_600_000_000);
  }
  return { read: () => readMavenVersion(directory, readdirSync(directory)) };
}

const JAR_TIME = Date.UTC(2022, 2, 3, 4, 5, 6);
const JAR = zipOf([{ name: 'META-INF/MANIFEST.MF', content: 'Manifest-Version: 1.0\n', time: JAR_TIME }]);
const PATH = 'org/slf4j/slf4j-api/2.0.9';
const POM_NAME = 'slf4j-api-2.0.9.pom';

test('a version has the files of its directory without checksums and signatures', async (t) => {
  const files = {
    [POM_NAME]: pom(FULL),
    'slf4j-api-2.0.9.jar': JAR,
    'slf4j-api-2.0.9-sources.jar': JAR,
    'slf4j-api-2.0.9.jar.sha1': 'x',
    'slf4j-api-2.0.9.jar.asc': 'x',
    '_remote.repositories': 'x',
  };
  const found = await layout(t, PATH, files).read();
  assert.deepEqual(found, {
    groupId: 'org.slf4j',
    artifactId: 'slf4j-api',
    version: '2.0.9',
    description: 'The <slf4j> API & more',
    files: [
      { name: 'slf4j-api-2.0.9-sources.jar', size: JAR.length, time: JAR_TIME },
      { name: 'slf4j-api-2.0.9.jar', size: JAR.length, time: JAR_TIME },
      { name: POM_NAME, size: Buffer.byteLength(pom(FULL)), time: 1_600_000_000_000 },
    ],
  });
});

test('a snapshot has the version of its directory', async (t) => {
  const text = pom(FULL.replace('2.0.9', '1-SNAPSHOT'));
  const files = { 'slf4j-api-1-20240101.100000-1.pom': 'old', 'slf4j-api-1-20240102.100000-2.pom': text };
  const { version } = await layout(t, 'org/slf4j/slf4j-api/1-SNAPSHOT', files).read();
  assert.equal(version, '1-SNAPSHOT');
  const open = { [POM_NAME]: pom(FULL.replace('2.0.9', `\${revision}`)) };
  assert.equal((await layout(t, PATH, open).read()).version, '2.0.9');
});

test('a POM that does not match its directory is refused', async (t) => {
  const at = (path: string) => layout(t, path, { [POM_NAME]: pom(FULL) }).read();
  await assert.rejects(at('org/slf4j/slf4j-api/2.0.10'), says(/has the version 2\.0\.9$/));
  await assert.rejects(at('org/slf4j/slf4j/2.0.9'), says(/has the artifactId slf4j-api$/));
  await assert.rejects(at('com/slf4j/slf4j-api/2.0.9'), says(/has the groupId org\.slf4j$/));
});

test('a version with a damaged jar is refused with the name of the jar', async (t) => {
  const files = { [POM_NAME]: pom(FULL), 'slf4j-api-2.0.9.jar': JAR.subarray(0, 40) };
  await assert.rejects(layout(t, PATH, files).read(), says(/^has a slf4j-api-2\.0\.9\.jar that is not a zip file/));
});

test('a corrupted POM is read or refused', () => {
  const whole = Buffer.from(pom(FULL));
  const flips = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 8 });
  fc.assert(
    fc.property(flips, fc.nat(whole.length), (flips, length) => {
      const content = Buffer.from(whole);
      for (const [at, byte] of flips) content[at] = byte;
      try {
        assert.notEqual(readPom(content.subarray(0, flips.length > 0 ? whole.length : length)).artifactId, '');
      } catch (error) {
        assert.ok(error instanceof UnreadableFileError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});
