import { codeBlock, el, highlighted, prose, withPrefix } from './dom.js';
import { buildCatalog, curlCommand } from './model.js';
import { createNavigation } from './navigation.js';
import { operationView } from './operation.js';

const main = document.getElementById('main');

async function start() {
  const response = await fetch(withPrefix('/openapi.json'));
  if (!response.ok) throw new Error(`/openapi.json returned status ${response.status}`);
  const doc = await response.json();
  // The URL can be relative to that of the document.
  const [server] = doc.servers;
  server.url = new URL(server.url, response.url).href.replace(/\/$/, '');
  const domains = buildCatalog(doc);
  document.getElementById('version').textContent = doc.info.version;

  const navigation = createNavigation(domains);
  const services = domains.flatMap((domain) => domain.services);
  let shownService;

  /** Shows the operation or service in the fragment of the URL, or the front page. */
  function route() {
    const id = location.hash.slice(1);
    const service = services.find(
      (candidate) => candidate.id === id || candidate.operations.some((operation) => operation.id === id),
    );
    navigation.close();
    if (service !== shownService || main.childElementCount === 0) {
      main.replaceChildren(...(service === undefined ? frontPage(doc, domains) : servicePage(doc, service)));
      shownService = service;
      if (service !== undefined) followScrolling(service, navigation);
    }
    const operation = service?.operations.find((candidate) => candidate.id === id);
    navigation.setCurrent(service, operation);
    document.title = [operation?.title ?? service?.title, `${doc.info.title} API`].filter(Boolean).join(' · ');
    const target = document.getElementById(id);
    if (target === null) scrollTo(0, 0);
    else target.scrollIntoView();
    return target ?? main;
  }

  addEventListener('hashchange', () => route().querySelector('h1 a, h2 a')?.focus({ preventScroll: true }));
  document.getElementById('skip').addEventListener('click', (event) => {
    event.preventDefault(); // the fragment of the URL names the operation
    main.focus();
  });
  main.replaceChildren();
  route();
}

function servicePage(doc, service) {
  return [
    el(
      'header',
      { className: 'page-header', id: service.id },
      el('h1', {}, el('a', { className: 'self', href: `#${service.id}` }, service.title)),
      prose(service.description),
    ),
    ...service.operations.map((operation) => operationView(doc, operation)),
  ];
}

/** Highlights the visible operation in the navigation while the user scrolls. */
function followScrolling(service, navigation) {
  const visible = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) visible[isIntersecting ? 'add' : 'delete'](target.id);
      const first = service.operations.find((operation) => visible.has(operation.id));
      if (first !== undefined) navigation.setCurrent(service, first);
    },
    { rootMargin: '-25% 0px -55% 0px' },
  );
  for (const article of main.querySelectorAll('article')) observer.observe(article);
}

function frontPage(doc, domains) {
  const server = doc.servers[0].url;
  const operations = domains.flatMap((domain) => domain.services.flatMap((service) => service.operations));
  const first = [
    operations.find((operation) => operation.path === '/ping/v2/ping'),
    operations.find((operation) => operation.path === '/iam/v2/groups'),
  ];
  const lines = first.filter(Boolean).map((operation) => curlCommand(server, operation, {}));
  const error = doc.components.responses.Error.content['application/json'].examples.notFound.value;
  const [lead, ...rest] = doc.info.description.split('\n\n');
  return [
    el(
      'header',
      { className: 'page-header hero' },
      el('p', { className: 'kicker' }, doc.info.title),
      el('h1', {}, doc.info.summary),
      el('p', { className: 'lead' }, lead),
    ),
    el(
      'div',
      { className: 'columns' },
      el(
        'section',
        { className: 'reference' },
        el('h2', {}, 'How it works'),
        prose(rest.join('\n\n')),
        codeBlock('Example of an error', el('code', {}, highlighted(error)), () => JSON.stringify(error, null, 2)),
      ),
      el(
        'div',
        { className: 'examples' },
        codeBlock('Base URL', el('code', {}, server), () => server),
        codeBlock('First requests', el('code', {}, lines.join('\n\n')), () => lines.join('\n\n')),
      ),
    ),
    ...domains.map((domain) =>
      el(
        'section',
        { className: 'domain' },
        el('h2', {}, domain.title),
        el('div', { className: 'cards' }, domain.services.map(card)),
      ),
    ),
  ];
}

const card = (service) =>
  el(
    'a',
    { className: 'card', href: `#${service.id}` },
    el('strong', {}, service.title),
    el('span', {}, service.description.split(/[.:](?: |$)/)[0]),
    el(
      'span',
      { className: 'muted' },
      service.operations.length === 1 ? '1 operation' : `${service.operations.length} operations`,
    ),
  );

start().catch((error) => {
  main.replaceChildren(el('p', { className: 'loading' }, `The API description could not be loaded: ${error.message}`));
});
