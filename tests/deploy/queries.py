#!/usr/bin/env python3
"""The queries of the dashboard and the alerts.

    queries.py known        each names only metrics of deploy/METRICS.md, and each alert has a unit test
    queries.py run URL      a Prometheus at the URL has values for each of the dashboard's queries, and has loaded each alert
"""
import json
import pathlib
import re
import sys
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Prometheus makes the first itself; histograms are served as three series each.
ALWAYS = {"up"}
HISTOGRAM_SERIES = ("_bucket", "_count", "_sum")


def dashboard_queries():
    dashboard = json.loads((ROOT / "deploy/grafana/dashboards/dpar.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def alert_names(text):
    return re.findall(r"^\s+- alert: (\w+)$", text, re.MULTILINE)


def known_metrics():
    names = set(ALWAYS)
    for name, kind in re.findall(r"^\| `(dpar_\w+)` \| (\w+) \|", (ROOT / "deploy/METRICS.md").read_text(), re.MULTILINE):
        names.update(name + end for end in HISTOGRAM_SERIES) if kind == "histogram" else names.add(name)
    return names


def check_known():
    metrics = known_metrics()
    rules = (ROOT / "deploy/prometheus/alerts.yml").read_text()
    used = set(re.findall(r"\bdpar_\w+", " ".join(dashboard_queries()) + rules))
    unknown = sorted(used - metrics)
    if unknown or not used:
        sys.exit(f"FAILED: not in deploy/METRICS.md: {', '.join(unknown)}")
    tests = (ROOT / "tests/deploy/alerts_test.yml").read_text()
    untested = [name for name in alert_names(rules) if f"alertname: {name}\n" not in tests]
    if untested:
        sys.exit(f"FAILED: no unit test makes these alerts fire: {', '.join(untested)}")
    print(f"{len(used)} metrics are known, {len(alert_names(rules))} alerts tested")


def ask(url, path, **parameters):
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
        return json.load(answer)


def run(url):
    empty = []
    for query in dashboard_queries():
        answer = ask(url, "query", query=query)
        if answer["status"] != "success":
            sys.exit(f"FAILED: {query}: {answer}")
        # What is left of a threshold may be nothing; everything else has a value once a job was run.
        if not answer["data"]["result"] and not query.endswith("> 0"):
            empty.append(query)
    loaded = {rule["name"] for group in ask(url, "rules")["data"]["groups"] for rule in group["rules"]}
    if empty:
        sys.exit("FAILED: no result: " + "; ".join(empty))
    missing = set(alert_names((ROOT / "deploy/prometheus/alerts.yml").read_text())) - loaded
    if missing:
        sys.exit(f"FAILED: Prometheus has not loaded {', '.join(sorted(missing))}")
    print(f"{len(dashboard_queries())} queries of the dashboard answered, {len(loaded)} alerts loaded")


if __name__ == "__main__":
    if sys.argv[1:] == ["known"]:
        check_known()
    elif len(sys.argv) == 3 and sys.argv[1] == "run":
        run(sys.argv[2].rstrip("/"))
    else:
        sys.exit(__doc__)
