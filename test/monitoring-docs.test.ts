// What operators watch the service by, as the guide for them says: metrics, alerts, dashboard.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { attemptFailures } from "../service/src/login/attempt/attempt.ts";
import { createMetrics } from "../service/src/platform/telemetry/metrics.ts";
import { root } from "./transcript.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly targets: readonly { readonly expr: string; readonly legendFormat?: string }[];
}

const { panels } = JSON.parse(read("docs/guides/dashboard.json")) as { panels: readonly Panel[] };
const queries = panels.flatMap(({ targets }) => targets);

function metricNames(): string[] {
  const sources = globSync("service/src/**/*metrics.ts", { cwd: root }).map(read).join("\n");
  return [...sources.matchAll(/name: "([a-z_]+)",\s+help:/g)].map(([, name = ""]) => name);
}

test("every metric is named in the guide for operators, and no other", () => {
  const made = metricNames();
  const [, table = ""] =
    /^\| Metric [^\n]*\n((?:\|[^\n]*\n)+)/m.exec(read("docs/guides/operate.md")) ?? [];
  const named = [...table.matchAll(/^\| `([a-z_]+)` /gm)].map(([, name]) => name);
  assert.ok(made.length >= 12);
  assert.deepEqual(new Set(named), new Set(made));
});

async function servedNames(): Promise<Set<string>> {
  const ofProcess = (await createMetrics().registry.getMetricsAsJSON()).map(({ name }) => name);
  return new Set(["up", ...ofProcess, ...metricNames()]);
}

test("the alerts ask for metrics that the service has", async () => {
  const served = await servedNames();
  const alerts = read("docs/guides/alerts.yml");
  const asked = [...alerts.matchAll(/(\w+)\{job="svc"/g)];
  const names = asked.map(([, name = ""]) => name.replace(/_(?:bucket|count)$/, ""));
  assert.ok(names.length >= 8);
  assert.deepEqual(
    names.filter((name) => !served.has(name)),
    [],
  );
  const sources = [
    "chain/chain-metrics.ts",
    "login/token/token-request.ts",
    "platform/http/health.ts",
    "platform/telemetry/metrics.ts",
  ].map((name) => read(`service/src/${name}`));
  const values = [...alerts.matchAll(/\b(?:event|outcome|route)=("[^"]+")/g)].map(
    ([, value = ""]) => value,
  );
  assert.ok(values.length >= 2);
  for (const value of values) assert.ok(sources.join("").includes(value), value);
});

test("the guide for operators tells what to do about every alert, under the headings that they name", () => {
  const alerts = read("docs/guides/alerts.yml");
  const guide = read("docs/guides/operate.md");
  const rows = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => `| \`${name}\` `);
  const headings = [...alerts.matchAll(/see "([^"]+)" in operate/g)].map(
    ([, text = ""]) => `# ${text}\n`,
  );
  assert.ok(rows.length > 10 && headings.length > 2);
  assert.deepEqual(
    [...rows, ...headings].filter((each) => !guide.includes(each)),
    [],
  );
});

/** The labels and the meaning of each metric in the guide. */
function describedMetrics(): Map<string, { labels: string[]; meaning: string }> {
  const rows = read("docs/guides/operate.md").matchAll(/^\| `([a-z_]+)` +\|([^|]*)\|([^|]*)\|$/gm);
  return new Map(
    [...rows].map(([, name = "", labels = "", meaning = ""]) => [
      name,
      { labels: labels.match(/\w+/g) ?? [], meaning },
    ]),
  );
}

test("each outcome is counted from zero, and named in the guide for operators", async () => {
  const made = await createMetrics().registry.getMetricsAsJSON();
  const described = describedMetrics();
  const ofOutcomes = made.filter(({ name }) => described.get(name)?.labels.includes("outcome"));
  assert.equal(ofOutcomes.length, 4);
  for (const { name, values } of ofOutcomes) {
    const named = described.get(name)?.meaning.match(/(?<=`)[a-z_]+(?=`)/g) ?? [];
    const counted = values.map(({ labels }) => (labels as { outcome: string }).outcome);
    assert.deepEqual(new Set(named), new Set(counted), name);
  }
  const logins = made.find(({ name }) => name === "logins_total");
  assert.deepEqual(
    logins?.values.map(({ labels }) => (labels as { outcome: string }).outcome),
    ["finished", ...attemptFailures],
  );
});

test("the dashboard asks for metrics that the service has, by labels that they have", async () => {
  const served = await servedNames();
  const described = describedMetrics();
  const always = ["job", "instance", "le"];
  for (const { expr, legendFormat = "" } of queries) {
    const [, suffixed = ""] = /(\w+)\{job="svc"/.exec(expr) ?? [];
    const name = suffixed.replace(/_(?:bucket|count)$/, "");
    assert.ok(served.has(name), expr);
    const known = new Set([...always, ...(described.get(name)?.labels ?? [])]);
    const lists = [...expr.matchAll(/ by \(([^)]*)\)/g)].map(([, list = ""]) => list).join();
    const named = [...expr.matchAll(/(\w+)=~?"/g), ...legendFormat.matchAll(/\{\{(\w+)\}\}/g)];
    const used = [...named.map(([, label = ""]) => label), ...(lists.match(/\w+/g) ?? [])];
    assert.deepEqual(
      used.filter((label) => !known.has(label)),
      [],
      expr,
    );
  }
});

test("the dashboard shows what every alert watches that it names, and no panel covers another", () => {
  const alerts = read("docs/guides/alerts.yml");
  const places = new Set<string>();
  for (const { title, description, gridPos, targets } of panels) {
    for (const [alert] of description.matchAll(/Svc\w+/g)) {
      const [, rule = ""] = new RegExp(`alert: ${alert}\\s+expr:([^]*?)labels:`).exec(alerts) ?? [];
      const watched = [...rule.matchAll(/(\w+)\{job="svc"/g)].map(([, name = ""]) => name);
      assert.ok(watched.length > 0, alert);
      for (const name of watched)
        assert.ok(
          targets.some(({ expr }) => expr.includes(name)),
          `${title}: ${alert}`,
        );
    }
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        assert.ok(x < 24 && !places.has(`${x} ${y}`), title);
        places.add(`${x} ${y}`);
      }
  }
});
