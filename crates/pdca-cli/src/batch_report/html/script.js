'use strict';
(() => {
  const by = (id) => document.getElementById(id);
  const bundles = [...document.querySelectorAll('details.bundle')];
  const texts = new Map(bundles.map((one) => [one, one.textContent.toLowerCase()]));
  const filter = by('filter');
  const groups = [...document.querySelectorAll('[data-group][aria-pressed]')];
  const visible = () => bundles.filter((one) => !one.hidden);

  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = groups.filter((one) => one.getAttribute('aria-pressed') === 'true').map((one) => one.dataset.group);
    for (const one of bundles) {
      const text = texts.get(one);
      const fits = words.every((word) => text.includes(word)) && (on.length === 0 || on.includes(one.dataset.group));
      one.hidden = !fits;
    }
    const shown = visible().length;
    by('shown').textContent = shown === bundles.length ? `${shown} shown` : `${shown} of ${bundles.length} shown`;
  };

  const expand = () => {
    const all = visible();
    const open = !all.every((one) => one.open);
    for (const one of all) one.open = open;
    by('expand').textContent = open ? 'Collapse all' : 'Expand all';
  };

  const theme = () => {
    const root = document.documentElement;
    const dark = root.classList.contains('dark') ||
      (!root.classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
    root.classList.toggle('dark', !dark);
    root.classList.toggle('light', dark);
  };

  const move = (by) => {
    const all = visible();
    if (all.length === 0) return;
    const at = all.findIndex((one) => one.contains(document.activeElement));
    const to = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
    const summary = all[to].querySelector('summary');
    summary.focus();
    summary.scrollIntoView({block: 'nearest'});
  };

  // A link to a bundle opens it, also if a filter hides it.
  const follow = () => {
    const target = location.hash.startsWith('#b-') && by(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.hidden = false;
    target.open = true;
    target.querySelector('summary').focus();
  };

  filter.addEventListener('input', apply);
  by('expand').addEventListener('click', expand);
  by('theme').addEventListener('click', theme);
  for (const one of groups) {
    one.addEventListener('click', () => {
      one.setAttribute('aria-pressed', String(one.getAttribute('aria-pressed') !== 'true'));
      apply();
    });
  }
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === filter) {
      if (event.key === 'Escape') { filter.value = ''; apply(); filter.blur(); }
      return;
    }
    const keys = {'/': () => filter.focus(), j: () => move(1), k: () => move(-1), e: expand, d: theme};
    const action = Object.hasOwn(keys, event.key) && keys[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  addEventListener('hashchange', follow);
  addEventListener('beforeprint', () => { for (const one of document.querySelectorAll('details')) one.open = true; });
  by('tools').hidden = false;
  by('theme').hidden = false;
  apply();
  follow();
})();
