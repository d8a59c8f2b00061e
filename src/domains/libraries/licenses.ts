/**
 * Whether a licence expression leaves no choice but a blocked licence. Of `MIT OR GPL-3.0-only` both must be blocked, of
 * `MIT AND GPL-3.0-only` one. In an expression with parentheses any blocked licence counts.
 */
export function hasBlockedLicense(expression: string, blocked: readonly string[]): boolean {
  if (expression === '' || blocked.length === 0) return false;
  const names = new Set(blocked.map((name) => name.trim().toLowerCase()));
  const text = expression.trim().toLowerCase();
  // Texts that are not SPDX expressions, such as `GNU GPL v3`, are compared as a whole.
  if (names.has(text)) return true;
  const isBlocked = (part: string): boolean => part.split(/[\s()]+/).some((word) => names.has(word));
  return text.includes('(') ? isBlocked(text) : text.split(/\s+or\s+/).every(isBlocked);
}
