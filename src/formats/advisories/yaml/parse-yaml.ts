import { type Document, isScalar, parseDocument, visit } from 'yaml';
import { malformed } from '../../strict-json.ts';

/** Far more than any package has. The parsed tree takes fifty times the memory of the text. */
const MAX_LENGTH = 2 * 1024 * 1024;
/** Advisory files have no aliases. The parser limits the size of what aliases expand to. */
const MAX_ALIASES = 100;

/** Parses YAML with every scalar as a string, because `1.10` is a version and not a number. */
export function parseYaml(text: string): unknown {
  if (text.length > MAX_LENGTH) throw malformed('', `is larger than ${MAX_LENGTH} characters`);
  const document = parseWithoutStacks(text);
  const [error] = document.errors;
  if (error) throw malformed('', `is not YAML: ${error.message} at line ${lineAt(text, error.pos[0])}`);
  refuseExpensiveDocument(document, text);
  try {
    return document.toJS();
  } catch (error) {
    throw malformed('', `is not YAML: ${(error as Error).message}`);
  }
}

/** A text that is not YAML may cause an error for each character. Without stack traces these errors fit into memory. */
function parseWithoutStacks(text: string): Document {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parseDocument(text, { schema: 'failsafe', logLevel: 'error', prettyErrors: false, uniqueKeys: false });
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const lineAt = (text: string, position: number): number => text.slice(0, position).split('\n').length;

/**
 * Refuses documents that take the parser quadratic time: it compares all keys of a mapping with each other, and
 * searches the whole file for each alias.
 */
function refuseExpensiveDocument(document: Document, text: string): void {
  let aliases = 0;
  visit(document, {
    Alias() {
      if (++aliases > MAX_ALIASES) throw malformed('', `has more than ${MAX_ALIASES} aliases`);
    },
    Map(_, { items, range }) {
      const keys = items.map(({ key }) => (isScalar(key) ? key.value : key));
      if (new Set(keys).size === keys.length) return;
      throw malformed(
        '',
        `is not YAML: duplicate key in the mapping that begins at line ${lineAt(text, range?.[0] ?? 0)}`,
      );
    },
  });
}
