// Gauges that are made when they are asked for.
#ifndef DPAR_SERVER_OBSERVE_GAUGE_FAMILY_H_
#define DPAR_SERVER_OBSERVE_GAUGE_FAMILY_H_

#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"
#include "prometheus/metric_type.h"

namespace dpar {

inline prometheus::MetricFamily GaugeFamily(std::string name, std::string help) {
  return {std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
}

inline void AddGauge(std::vector<prometheus::ClientMetric::Label> labels, double value,
                     prometheus::MetricFamily& family) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.gauge.value = value;
}

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_GAUGE_FAMILY_H_
