#include "server/observe/exposition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "prometheus/client_metric.h"
#include "prometheus/metric_type.h"

namespace dpar {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

constexpr absl::string_view kTotal = "_total";
constexpr absl::string_view kSeconds = "seconds";

std::string Number(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  std::array<char, 32> text;
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

// Bounds of buckets are labels, so both formats write them the same way: OpenMetrics', where 1 is 1.0.
std::string Bound(double bound) {
  const std::string text = Number(bound);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string LabelValue(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

absl::string_view TypeName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Gauge:
      return "gauge";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "unknown";
  }
}

void WriteSample(absl::string_view name, const Labels& labels, const std::string& value, std::string& text) {
  absl::StrAppend(&text, name);
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "{" : ",", labels[i].name, "=\"", LabelValue(labels[i].value), "\"");
  }
  absl::StrAppend(&text, labels.empty() ? " " : "} ", value, "\n");
}

void WriteHistogram(absl::string_view name, const prometheus::ClientMetric& metric, std::string& text) {
  const prometheus::ClientMetric::Histogram& histogram = metric.histogram;
  for (const prometheus::ClientMetric::Bucket& bucket : histogram.bucket) {
    Labels labels = metric.label;
    labels.push_back({"le", Bound(bucket.upper_bound)});
    WriteSample(absl::StrCat(name, "_bucket"), labels, absl::StrCat(bucket.cumulative_count), text);
  }
  WriteSample(absl::StrCat(name, "_count"), metric.label, absl::StrCat(histogram.sample_count), text);
  WriteSample(absl::StrCat(name, "_sum"), metric.label, Number(histogram.sample_sum), text);
}

void WriteFamily(const prometheus::MetricFamily& family, bool open_metrics, std::string& text) {
  // In OpenMetrics a counter's family has its name without the suffix that its samples have.
  absl::string_view name = family.name;
  if (open_metrics && family.type == prometheus::MetricType::Counter) {
    name = absl::StripSuffix(name, kTotal);
  }
  const std::string help =
      open_metrics ? LabelValue(family.help) : absl::StrReplaceAll(family.help, {{"\\", "\\\\"}, {"\n", "\\n"}});
  absl::StrAppend(&text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", TypeName(family.type), "\n");
  if (open_metrics && absl::EndsWith(name, absl::StrCat("_", kSeconds))) {
    absl::StrAppend(&text, "# UNIT ", name, " ", kSeconds, "\n");
  }
  for (const prometheus::ClientMetric& metric : family.metric) {
    switch (family.type) {
      case prometheus::MetricType::Counter:
        WriteSample(family.name, metric.label, Number(metric.counter.value), text);
        break;
      case prometheus::MetricType::Histogram:
        WriteHistogram(family.name, metric, text);
        break;
      default:
        WriteSample(family.name, metric.label, Number(metric.gauge.value), text);
    }
  }
}

}  // namespace

Exposition ChooseExposition(absl::string_view accept) {
  return absl::StrContains(accept, "application/openmetrics-text") ? Exposition::kOpenMetrics : Exposition::kPrometheus;
}

absl::string_view ContentType(Exposition exposition) {
  return exposition == Exposition::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                : "text/plain; version=0.0.4; charset=utf-8";
}

std::string Expose(std::vector<prometheus::MetricFamily> families, Exposition exposition) {
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const bool open_metrics = exposition == Exposition::kOpenMetrics;
  std::string text;
  for (prometheus::MetricFamily& family : families) {
    std::sort(family.metric.begin(), family.metric.end(),
              [](const auto& a, const auto& b) { return a.label < b.label; });
    WriteFamily(family, open_metrics, text);
  }
  return open_metrics ? text + "# EOF\n" : text;
}

}  // namespace dpar
