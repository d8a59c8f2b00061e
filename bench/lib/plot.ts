/** How two costs, in microseconds, grow with the number of something. */
export interface Curve {
  readonly of: string;
  readonly points: readonly { readonly x: number; readonly decision: number; readonly page: number }[];
}

const SIZE = { width: 320, height: 200, left: 52, bottom: 28, top: 30, right: 14 };
const COLOURS = { page: '#1f6feb', decision: '#d1242f' } as const;

/** Small charts side by side as SVG, both axes logarithmic: what does not grow is a flat line. */
export function plot(curves: readonly Curve[]): string {
  const values = curves.flatMap(({ points }) => points.flatMap(({ decision, page }) => [decision, page]));
  const range: [number, number] = [
    Math.floor(Math.log10(Math.min(...values))),
    Math.ceil(Math.log10(Math.max(...values))),
  ];
  const charts = curves.map((curve, at) =>
    chart(curve, (at % 2) * SIZE.width, Math.floor(at / 2) * SIZE.height, range),
  );
  const height = Math.ceil(curves.length / 2) * SIZE.height;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * SIZE.width} ${height}" font-family="sans-serif" font-size="10">
<title>Cost in microseconds by number of repos, groups, bindings and callers</title>
<rect width="100%" height="100%" fill="white"/>
${charts.join('\n')}
</svg>
`;
}

function chart({ of, points }: Curve, left: number, top: number, [low, high]: [number, number]): string {
  const xs = points.map(({ x }) => Math.log10(x));
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const inner = { width: SIZE.width - SIZE.left - SIZE.right, height: SIZE.height - SIZE.top - SIZE.bottom };
  const atX = (x: number): number => left + SIZE.left + ((Math.log10(x) - first) / (last - first || 1)) * inner.width;
  const atY = (y: number): number => top + SIZE.top + (1 - (Math.log10(y) - low) / (high - low)) * inner.height;
  const decades = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const lines = (['page', 'decision'] as const).map((cost) => {
    const path = points.map((point) => `${atX(point.x).toFixed(1)},${atY(point[cost]).toFixed(1)}`).join(' ');
    const end = points.at(-1);
    const label =
      end &&
      `<text x="${atX(end.x) - 4}" y="${atY(end[cost]) - 5}" text-anchor="end" fill="${COLOURS[cost]}">${cost === 'page' ? 'page of 50' : cost}</text>`;
    return `<polyline points="${path}" fill="none" stroke="${COLOURS[cost]}" stroke-width="2"/>${label ?? ''}`;
  });
  return [
    `<text x="${left + SIZE.left}" y="${top + 16}" font-weight="bold">microseconds by number of ${of}</text>`,
    ...decades.map(
      (y) =>
        `<line x1="${left + SIZE.left}" x2="${left + SIZE.width - SIZE.right}" y1="${atY(y)}" y2="${atY(y)}" stroke="#ddd"/><text x="${left + SIZE.left - 4}" y="${atY(y) + 3}" text-anchor="end">${y.toLocaleString('en')}</text>`,
    ),
    ...points.map(
      ({ x }) =>
        `<text x="${atX(x)}" y="${top + SIZE.height - 12}" text-anchor="middle">${x.toLocaleString('en')}</text>`,
    ),
    ...lines,
  ].join('\n');
}
