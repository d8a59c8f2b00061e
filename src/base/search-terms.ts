const BETWEEN_PARTS = /[^\p{L}\p{N}]+/u;

/** The words of a text, in lower case. */
export const splitWords = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

/** The words that a name is made of: `py3-Django` gives `py3` and `django`. */
export const splitNameParts = (name: string): string[] => name.toLowerCase().split(BETWEEN_PARTS).filter(Boolean);
