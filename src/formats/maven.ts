import { parseXmlTexts } from './maven-xml.ts';
import { UnreadableFile } from './unreadable-file.ts';

/** What a POM says about a library. */
export interface PomFacts {
  readonly groupId: string;
  readonly artifactId: string;
  readonly version: string;
  readonly description: string;
}

/** What is read of a POM. */
const PATHS = [
  ...['groupId', 'artifactId', 'version', 'name', 'description'].map((name) => `project/${name}`),
  ...['groupId', 'version'].map((name) => `project/parent/${name}`),
];

/** Reads a POM. What it does not say itself it has from its parent, which it names with all we need. */
export function readPom(content: Buffer): PomFacts {
  const texts = parseXmlTexts(content, PATHS);
  const own = (name: string): string => texts.get(`project/${name}`) ?? '';
  const inherited = (name: string): string => own(name) || (texts.get(`project/parent/${name}`) ?? '');
  if (own('artifactId') === '') throw new UnreadableFile('is no POM: it has no artifactId');
  return {
    groupId: inherited('groupId'),
    artifactId: own('artifactId'),
    version: inherited('version'),
    description: own('description') || own('name'),
  };
}
