import { el } from './dom.js';
import { matches } from './model.js';
import { verbBadge } from './operation.js';

/** The list of all operations on the left, with its filter. */
export function createNavigation(domains) {
  const nav = document.getElementById('navigation');
  const filter = document.getElementById('filter');
  const count = document.getElementById('filter-count');
  const menu = document.getElementById('menu');
  const services = domains.flatMap((domain) => domain.services.map(serviceEntry));
  const groups = domains.map((domain) => ({
    element: el('section', {}, el('h2', {}, domain.title)),
    entries: services.filter((entry) => domain.services.includes(entry.service)),
  }));
  for (const { element, entries } of groups) element.append(...entries.map((entry) => entry.element));
  const noMatch = el('p', { className: 'muted', hidden: true }, 'No operation matches.');
  document.getElementById('links').append(...groups.map((group) => group.element), noMatch);

  let current;

  function applyFilter() {
    const text = filter.value.trim();
    let matchCount = 0;
    for (const { service, element, links } of services) {
      for (const { operation, item } of links) item.hidden = !matches(operation, service, text);
      const visibleCount = links.filter(({ item }) => !item.hidden).length;
      matchCount += visibleCount;
      element.hidden = visibleCount === 0;
      element.open = text !== '' || service === current?.service;
    }
    for (const { element, entries } of groups) element.hidden = entries.every((entry) => entry.element.hidden);
    noMatch.hidden = matchCount > 0;
    count.textContent = text === '' ? '' : `Matching operations: ${matchCount}`;
  }

  function toggle(open) {
    nav.classList.toggle('open', open);
    menu.setAttribute('aria-expanded', String(open));
  }

  filter.addEventListener('input', applyFilter);
  menu.addEventListener('click', () => {
    toggle(!nav.classList.contains('open'));
    if (nav.classList.contains('open')) filter.focus();
  });
  document.addEventListener('click', (event) => {
    if (!nav.contains(event.target) && !menu.contains(event.target)) toggle(false);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && nav.classList.contains('open')) {
      toggle(false);
      menu.focus();
    }
    const typing = event.target.closest('input, textarea, select');
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      filter.focus();
    }
  });

  return {
    /** Highlights the current operation. */
    setCurrent(service, operation) {
      const isOtherService = current?.service !== service;
      current = { service };
      if (isOtherService && filter.value === '') applyFilter();
      for (const entry of services) {
        for (const { operation: candidate, link } of entry.links) {
          if (candidate === operation) {
            link.setAttribute('aria-current', 'true');
            link.scrollIntoView({ block: 'nearest' });
          } else link.removeAttribute('aria-current');
        }
      }
    },
    close: () => toggle(false),
  };
}

function serviceEntry(service) {
  const links = service.operations.map((operation) => {
    const link = el('a', { href: `#${operation.id}` }, verbBadge(operation.verb), el('span', {}, operation.title));
    return { operation, link, item: el('li', {}, link) };
  });
  const list = el(
    'ul',
    {},
    el('li', {}, el('a', { href: `#${service.id}` }, 'Overview')),
    links.map(({ item }) => item),
  );
  return { service, links, element: el('details', {}, el('summary', {}, service.title), list) };
}
