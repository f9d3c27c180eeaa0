#!/usr/bin/env bash
# Has promtool check the scrape configuration and the alert rules, runs the rules' unit tests, and compares every metric
# that rules and dashboard ask for with the table of those that there are.
#   bash tests/deploy/prometheus_test.sh SOURCE_DIRECTORY
set -euo pipefail
cd "$1"
for tool in promtool python3; do
  command -v $tool >/dev/null || {
    echo "SKIPPED: $tool is not installed"
    exit 77
  }
done
promtool check config deploy/prometheus/prometheus.yml
promtool test rules tests/deploy/alerts_test.yml
python3 tests/deploy/queries.py known
