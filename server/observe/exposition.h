// Metrics as text.
#ifndef DPAR_SERVER_OBSERVE_EXPOSITION_H_
#define DPAR_SERVER_OBSERVE_EXPOSITION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "prometheus/metric_family.h"

namespace dpar {

enum class Exposition {
  kPrometheus,   // text format 0.0.4
  kOpenMetrics,  // OpenMetrics 1.0.0
};

// What to answer a caller with this Accept header: OpenMetrics to those who take it.
Exposition ChooseExposition(absl::string_view accept);
absl::string_view ContentType(Exposition exposition);

// The families in the order of their names, each number in as many digits as give it back exactly. Counters' names end
// in _total.
std::string Expose(std::vector<prometheus::MetricFamily> families, Exposition exposition);

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_EXPOSITION_H_
