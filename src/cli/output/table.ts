const GAP = '  ';
/** Columns are not cut below this width. */
const MIN_WIDTH = 8;

/**
 * Formats aligned columns under a header. With a width, the widest columns are cut until the lines fit. The first
 * column is never cut because it contains the uid, which people copy.
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

/** The number of code points. Wide characters, such as Chinese ones, count as one. */
const lengthOf = (text: string): number => [...text].length;

function shrink(widths: number[], width: number): void {
  const excess = () => widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) - width;
  while (excess() > 0) {
    const [, ...rest] = widths;
    const widest = Math.max(...rest);
    if (widest <= MIN_WIDTH) return;
    widths[widths.indexOf(widest, 1)] = Math.max(MIN_WIDTH, widest - 1);
  }
}

function fit(text: string, limit: number): string {
  const characters = [...text];
  return characters.length > limit
    ? `${characters.slice(0, limit - 1).join('')}…`
    : text + ' '.repeat(limit - characters.length);
}
