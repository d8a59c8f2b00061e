/** Creates an element. Text becomes text nodes, never markup. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined));
  return element;
}

/** The path of this server may have a prefix, which the page knows. */
export function withPrefix(path) {
  return document.documentElement.dataset.prefix + path;
}

/** Renders the Markdown that comments use: paragraphs, lists with dashes, and `code`. */
export function prose(text = '') {
  return text
    .split('\n\n')
    .filter((paragraph) => paragraph !== '')
    .map((paragraph) => {
      const items = paragraph.split('\n');
      if (!items.every((item) => item.startsWith('- '))) return el('p', {}, inline(paragraph));
      return el(
        'ul',
        {},
        items.map((item) => el('li', {}, inline(item.slice(2)))),
      );
    });
}

export const inline = (text) =>
  text.split(/(`[^`]+`)/).map((piece) => (piece.startsWith('`') ? el('code', {}, piece.slice(1, -1)) : piece));

/** Text in which long names may wrap after a slash, dot or underscore. */
export const foldable = (text) => text.split(/(?<=[/._])/).flatMap((part) => [part, el('wbr')]);

/** JSON with a color for each type of value. */
export function highlighted(value) {
  const source = JSON.stringify(value, null, 2);
  const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;
  const pieces = [];
  let end = 0;
  for (const token of source.matchAll(tokens)) {
    const [text, string, colon] = token;
    const kind = colon !== undefined ? 'json-key' : string !== undefined ? 'json-string' : 'json-literal';
    pieces.push(source.slice(end, token.index), el('span', { className: kind }, string ?? text), colon ?? '');
    end = token.index + text.length;
  }
  return [...pieces, source.slice(end)];
}

/** Sends a message to screen readers. */
export function announce(text) {
  document.getElementById('announcer').textContent = text;
}

/** A block of code with a title. `text()` returns the text for the copy button. */
export function codeBlock(title, code, text) {
  const button = el('button', { type: 'button', className: 'copy' }, 'Copy');
  const block = el('pre', { tabIndex: 0, ariaLabel: title }, code);
  button.addEventListener('click', async () => {
    const copied = await copy(text());
    if (!copied) getSelection().selectAllChildren(block);
    button.textContent = copied ? 'Copied' : 'Selected';
    announce(`${title} ${button.textContent.toLowerCase()}`);
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 1600);
  });
  return el('figure', { className: 'code' }, el('figcaption', {}, el('span', {}, title), button), block);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // browsers allow the clipboard only on https and localhost
  }
}
