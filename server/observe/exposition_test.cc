#include "server/observe/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "prometheus/client_metric.h"
#include "server/observe/gauge_family.h"

namespace dpar {
namespace {

prometheus::MetricFamily Counter(double value) {
  prometheus::MetricFamily family{"a_total", "Calls \"so\\far\".", prometheus::MetricType::Counter, {}};
  family.metric.emplace_back().counter.value = value;
  family.metric.back().label = {{"method", "S/\"M\"\\\n"}};
  return family;
}

prometheus::MetricFamily Histogram() {
  prometheus::MetricFamily family{"b_seconds", "Time.", prometheus::MetricType::Histogram, {}};
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = {{"stage", "x"}};
  metric.histogram.bucket = {{1, 0.25}, {2, 1}, {3, std::numeric_limits<double>::infinity()}};
  metric.histogram.sample_count = 3;
  metric.histogram.sample_sum = 10.5;
  return family;
}

TEST(ExpositionTest, ThePrometheusFormatIsExact) {
  EXPECT_EQ(Expose({Histogram(), Counter(2)}, Exposition::kPrometheus),
            "# HELP a_total Calls \"so\\\\far\".\n"
            "# TYPE a_total counter\n"
            "a_total{method=\"S/\\\"M\\\"\\\\\\n\"} 2\n"
            "# HELP b_seconds Time.\n"
            "# TYPE b_seconds histogram\n"
            "b_seconds_bucket{stage=\"x\",le=\"0.25\"} 1\n"
            "b_seconds_bucket{stage=\"x\",le=\"1.0\"} 2\n"
            "b_seconds_bucket{stage=\"x\",le=\"+Inf\"} 3\n"
            "b_seconds_count{stage=\"x\"} 3\n"
            "b_seconds_sum{stage=\"x\"} 10.5\n");
}

TEST(ExpositionTest, OpenMetricsNamesCountersWithoutTheirSuffixHasUnitsAndAnEnd) {
  EXPECT_EQ(Expose({Histogram(), Counter(2)}, Exposition::kOpenMetrics),
            "# HELP a Calls \\\"so\\\\far\\\".\n"
            "# TYPE a counter\n"
            "a_total{method=\"S/\\\"M\\\"\\\\\\n\"} 2\n"
            "# HELP b_seconds Time.\n"
            "# TYPE b_seconds histogram\n"
            "# UNIT b_seconds seconds\n"
            "b_seconds_bucket{stage=\"x\",le=\"0.25\"} 1\n"
            "b_seconds_bucket{stage=\"x\",le=\"1.0\"} 2\n"
            "b_seconds_bucket{stage=\"x\",le=\"+Inf\"} 3\n"
            "b_seconds_count{stage=\"x\"} 3\n"
            "b_seconds_sum{stage=\"x\"} 10.5\n"
            "# EOF\n");
}

TEST(ExpositionTest, NumbersAreExactAndSeriesInOrder) {
  prometheus::MetricFamily family = GaugeFamily("g", "Numbers.");
  AddGauge({{"k", "d"}}, std::numeric_limits<double>::quiet_NaN(), family);
  AddGauge({{"k", "c"}}, -std::numeric_limits<double>::infinity(), family);
  AddGauge({{"k", "b"}}, 9'007'199'254'740'991, family);
  AddGauge({{"k", "a"}}, 0.1, family);
  EXPECT_EQ(Expose({family}, Exposition::kPrometheus),
            "# HELP g Numbers.\n# TYPE g gauge\n"
            "g{k=\"a\"} 0.1\ng{k=\"b\"} 9007199254740991\ng{k=\"c\"} -Inf\ng{k=\"d\"} NaN\n");
}

TEST(ExpositionTest, WhoTakesOpenMetricsGetsIt) {
  EXPECT_EQ(ChooseExposition(""), Exposition::kPrometheus);
  EXPECT_EQ(ChooseExposition("text/html,*/*"), Exposition::kPrometheus);
  EXPECT_EQ(ChooseExposition("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"),
            Exposition::kOpenMetrics);
  EXPECT_EQ(ContentType(Exposition::kPrometheus), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(ContentType(Exposition::kOpenMetrics), "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

}  // namespace
}  // namespace dpar
