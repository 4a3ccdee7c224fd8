// The dashboard for Grafana asks for metrics and labels that exist, and has what Grafana needs to import it.
'use strict';

const { Registry } = require('prom-client');
const RateLimiter = require('../..');
const dashboard = require('../../examples/observability/grafana-dashboard.json');
const { registerMetrics } = require('../../lib/adapters/metrics');
const { callDirectly } = require('../middleware/apps');
const { readPage } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');

const { panels } = dashboard;
const variables = new Map(dashboard.templating.list.map((variable) => [variable.name, variable]));

const FUNCTIONS = ['histogram_quantile', 'increase', 'max', 'min', 'rate', 'sum', 'topk'];

const matchersOf = (text) =>
  text.split(',').map((matcher) => {
    const [, label, operator, value] = /^(\w+)(=|=~)"([^"]*)"$/.exec(matcher);
    return { label, operator, value };
  });

/** The series that an expression of PromQL reads, with their matchers, and the labels by which it groups. */
function partsOf(expression) {
  const series = [];
  const groups = [];
  const rest = expression
    .replace(/\[\$\w+\]/g, '')
    .replace(/(\w+)\{([^}]*)\}/g, (_, name, matchers) => {
      series.push({ name, matchers: matchersOf(matchers) });
      return '';
    })
    .replace(/\bby \(([^)]*)\)/g, (_, labels) => {
      groups.push(...labels.split(', '));
      return '';
    });
  for (const [, word, call] of rest.matchAll(/\b([a-z_]\w*) *(\(?)/g)) {
    if (call === '') series.push({ name: word, matchers: [] });
    else expect(FUNCTIONS).toContain(word);
  }
  return { series, groups };
}

const queries = panels.flatMap(({ title, targets }) =>
  targets.map(({ expr, refId }) => [`${title}, ${refId}`, expr]),
);

describe('the queries', () => {
  /** The labels of each series after real traffic: a list of objects by the series' name. */
  const seen = new Map();

  beforeAll(async () => {
    const server = await startRedis();
    const register = new Registry();
    const options = { interval: 60_000, maxInInterval: 1, namespace: 'dashboard' };
    const limiters = {
      memory: RateLimiter(options),
      redis: RateLimiter({ ...options, redis: server.url, onError: 'memory' }),
      leases: RateLimiter({
        ...{ ...options, namespace: 'dashboard-leases', redis: server.url },
        ...{ countBlocked: false, lease: 1000 },
      }),
      slots: RateLimiter.ConcurrencyLimiter({ max: 1 }),
    };
    const metrics = registerMetrics({ limiters, register });
    const shadowing = RateLimiter.rateLimit({
      validate: false,
      rules: [
        { path: '/', limit: 1, shadow: true },
        { path: '/', limit: 5 },
      ],
    });
    try {
      for (const limiter of [limiters.memory, limiters.redis]) {
        for (let i = 0; i < 2; i++) await limiter('ada');
      }
      const req = () => ({ ip: '192.0.2.1', method: 'GET', url: '/', headers: {} });
      for (let i = 0; i < 2; i++) callDirectly(shadowing, req());
      await server.stop();
      await limiters.redis('ada');
      for (const line of (await register.metrics()).split('\n')) {
        const [, name, labels] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
        if (name === undefined) continue;
        const entry = [...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, k, v]) => [k, v]);
        seen.set(name, [...(seen.get(name) ?? []), Object.fromEntries(entry)]);
      }
    } finally {
      metrics.unregister();
      await limiters.redis.close();
      await limiters.leases.close();
    }
  });

  test.each(queries)('%s: reads series that exist, by labels that they have', (_, expression) => {
    const { series, groups } = partsOf(expression);
    expect(series).not.toEqual([]);
    for (const { name, matchers } of series) {
      expect([...seen.keys()]).toContain(name);
      const found = seen.get(name);
      for (const label of groups) expect(found.filter((labels) => label in labels)).toEqual(found);
      for (const { label, operator, value } of matchers) {
        const isRight =
          operator === '=' ? (labels) => labels[label] === value : (labels) => label in labels;
        expect(found.filter(isRight)).not.toEqual([]);
        if (value.startsWith('$')) expect(variables.has(value.slice(1))).toBe(true);
      }
    }
  });

  test('show every metric there is', () => {
    const asked = queries.flatMap(([, expression]) => partsOf(expression).series);
    const family = (name) => name.replace(/_(bucket|count|sum)$/, '');
    const names = new Set(asked.map(({ name }) => family(name)));
    expect([...names].sort()).toEqual([...new Set([...seen.keys()].map(family))].sort());
  });

  test('the variable limiter has the values of a label that exists', () => {
    const { definition, query } = variables.get('limiter');
    const [, name, label] = /^label_values\((\w+), (\w+)\)$/.exec(definition);
    const found = seen.get(name).map((labels) => labels[label]);
    expect(found).toEqual(expect.arrayContaining(['memory', 'redis']));
    expect(query.query).toBe(definition);
  });
});

describe('the dashboard', () => {
  test('has panels with a title of its own, an id, a description, a unit and queries, side by side', () => {
    for (const property of ['title', 'id']) {
      expect(new Set(panels.map((panel) => panel[property])).size).toBe(panels.length);
    }
    for (const { description, fieldConfig, targets } of panels) {
      expect(description).toMatch(/\.$/);
      expect(fieldConfig.defaults.unit).toMatch(/^\w+$/);
      const refIds = targets.map(({ refId }) => refId);
      expect(new Set(refIds).size).toBe(refIds.length);
    }
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24);
      return Array.from({ length: w * h }, (_, i) => `${x + (i % w)}:${y + Math.floor(i / w)}`);
    });
    expect(new Set(cells).size).toBe(cells.length);
  });

  test('has the panels that docs/observability.md explains', () => {
    const [, section] = readPage('docs/observability.md').split('## A dashboard for Grafana');
    const rows = section.split('## ')[0].matchAll(/^\| ([A-Z][^|]*) \|/gm);
    const explained = [...rows].flatMap(([, titles]) => titles.split(', '));
    expect(explained.sort()).toEqual(panels.map(({ title }) => title).sort());
  });

  test('takes its data source from a variable, and names the panels that it needs', () => {
    expect(variables.get('datasource')).toMatchObject({ type: 'datasource', query: 'prometheus' });
    const sources = JSON.stringify(dashboard).match(/(?<="datasource":)\{"type"[^}]*\}?"\}/g);
    expect([...new Set(sources)]).toEqual([`{"type":"prometheus","uid":"$\{datasource}"}`]);
    const types = new Set(panels.map(({ type }) => type));
    const required = dashboard.__requires.filter(({ type }) => type === 'panel');
    expect([...types].sort()).toEqual(required.map(({ id }) => id).sort());
    expect(dashboard.id).toBe(null); // or an import would replace another one
  });
});
