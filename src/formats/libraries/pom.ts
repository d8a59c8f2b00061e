import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { readXmlTexts } from './pom-xml.ts';

/** The properties of a POM that the server stores. */
export interface Pom {
  readonly groupId: string;
  readonly artifactId: string;
  readonly version: string;
  readonly description: string;
}

/** The elements that are read. */
const PATHS = [
  ...['groupId', 'artifactId', 'version', 'name', 'description'].map((name) => `project/${name}`),
  ...['groupId', 'version'].map((name) => `project/parent/${name}`),
];

/** Reads a POM. Group and version are inherited from the parent, whose own group and version are in the POM. */
export function readPom(content: Buffer): Pom {
  const texts = readXmlTexts(content, PATHS);
  const own = (name: string): string => texts.get(`project/${name}`) ?? '';
  const inherited = (name: string): string => own(name) || (texts.get(`project/parent/${name}`) ?? '');
  if (own('artifactId') === '') throw new UnreadableFileError('is not a POM: it has no artifactId');
  return {
    groupId: inherited('groupId'),
    artifactId: own('artifactId'),
    version: inherited('version'),
    description: own('description') || own('name'),
  };
}
