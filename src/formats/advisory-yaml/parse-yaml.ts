import { type Document, isScalar, parseDocument, visit } from 'yaml';
import { damaged } from '../reading.ts';

/** Far more than a package ever had; the tree of a file takes fifty times the memory of its text. */
const MAX_LENGTH = 2 * 1024 * 1024;
/** Advisories have none. What few of them unfold to is limited by the parser. */
const MAX_ALIASES = 100;

/** Every scalar is a text: `1.10` is a version and no number. */
export function parseYaml(text: string): unknown {
  if (text.length > MAX_LENGTH) throw damaged('', `is larger than ${MAX_LENGTH} characters`);
  const document = parsed(text);
  const [error] = document.errors;
  if (error) throw damaged('', `is not YAML: ${error.message} at line ${lineAt(text, error.pos[0])}`);
  refuseTraps(document, text);
  try {
    return document.toJS();
  } catch (error) {
    throw damaged('', `is not YAML: ${(error as Error).message}`);
  }
}

/** A text without any sense has an error in every character; without their stacks, they fit into memory. */
function parsed(text: string): Document {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parseDocument(text, { schema: 'failsafe', logLevel: 'error', prettyErrors: false, uniqueKeys: false });
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const lineAt = (text: string, position: number): number => text.slice(0, position).split('\n').length;

/** What would keep the parser busy: it compares each key with each other, and looks for each alias in all of the file. */
function refuseTraps(document: Document, text: string): void {
  let aliases = 0;
  visit(document, {
    Alias() {
      if (++aliases > MAX_ALIASES) throw damaged('', `has more than ${MAX_ALIASES} aliases`);
    },
    Map(_, { items, range }) {
      const keys = items.map(({ key }) => (isScalar(key) ? key.value : key));
      if (new Set(keys).size === keys.length) return;
      throw damaged('', `is not YAML: a key is there twice in what begins at line ${lineAt(text, range?.[0] ?? 0)}`);
    },
  });
}
