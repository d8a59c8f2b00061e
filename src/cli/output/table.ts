const GAP = '  ';
/** Narrower than this a column says nothing any more. */
const LEAST = 8;

/**
 * Aligned columns under a header. With a width, the widest columns are cut until a line fits; the first never is, since
 * it holds what people copy.
 */
export function tableText(header: readonly string[], rows: readonly (readonly string[])[], width?: number): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) =>
    lines.reduce((widest, cells) => Math.max(widest, lengthOf(cells[column] ?? '')), 0),
  );
  if (width !== undefined) shrink(widths, width);
  const text = lines.map((cells) =>
    widths
      .map((limit, column) => fit(cells[column] ?? '', limit))
      .join(GAP)
      .trimEnd(),
  );
  return `${text.join('\n')}\n`;
}

/** In characters as people see most of them; wide ones, as in Chinese, count as one. */
const lengthOf = (text: string): number => [...text].length;

function shrink(widths: number[], width: number): void {
  const excess = () => widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) - width;
  while (excess() > 0) {
    const [, ...rest] = widths;
    const widest = Math.max(...rest);
    if (widest <= LEAST) return;
    widths[widths.indexOf(widest, 1)] = Math.max(LEAST, widest - 1);
  }
}

function fit(text: string, limit: number): string {
  const characters = [...text];
  return characters.length > limit
    ? `${characters.slice(0, limit - 1).join('')}…`
    : text + ' '.repeat(limit - characters.length);
}
