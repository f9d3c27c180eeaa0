#include "tests/lab/paper_table.h"

#include <algorithm>
#include <array>

namespace dpar::lab {
namespace {

constexpr std::array<PaperMethod, 6> kMethods = {{
    {"GAP", v1::GAP},
    {"SAGE", v1::SAGE},
    {"Features", v1::FEATURES},
    {"DPAR-EM0", v1::DPAR_EM0},
    {"DPAR-EM1", v1::DPAR_EM1},
    {"DPAR-GM", v1::DPAR_GM},
}};
// DPARNoDP is DPAR without noise: exact rows with their weights, as those of DPAR-GM are without its noise.
constexpr std::array<PaperMethod, 3> kMethodsNoNoise = {{
    {"DPARNoDP", v1::DPAR_GM},
    {"GAPNoDP", v1::GAP},
    {"FeaturesNoDP", v1::FEATURES},
}};

// One row of the table, in the order of the methods.
struct PrivateRow {
  absl::string_view graph;
  double epsilon;
  std::array<double, kMethods.size()> accuracy;
};
constexpr std::array<PrivateRow, 6> kPrivate = {{
    {"cora_ml", 1, {0.34, 0.152, 0.5733, 0.3421, 0.2895, 0.3333}},
    {"cora_ml", 8, {0.5733, 0.368, 0.6107, 0.5965, 0.6199, 0.4854}},
    {"coauthor_cs", 1, {0.66, 0.0917, 0.8344, 0.8898, 0.8921, 0.8927}},
    {"coauthor_cs", 8, {0.8537, 0.7366, 0.895, 0.9017, 0.8994, 0.9063}},
    {"coauthor_phy", 1, {0.8192, 0.1263, 0.8412, 0.8887, 0.8927, 0.8948}},
    {"coauthor_phy", 8, {0.9088, 0.8919, 0.9017, 0.9023, 0.9020, 0.9101}},
}};
struct NoNoiseRow {
  absl::string_view graph;
  std::array<double, kMethodsNoNoise.size()> accuracy;
};
constexpr std::array<NoNoiseRow, 3> kNoNoise = {{
    {"cora_ml", {0.7076, 0.8883, 0.7733}},
    {"coauthor_cs", {0.9707, 0.9571, 0.9307}},
    {"coauthor_phy", {0.9548, 0.9597, 0.9504}},
}};

const PrivateRow* FindRow(absl::string_view graph, double epsilon) {
  const auto* row = std::find_if(kPrivate.begin(), kPrivate.end(),
                                 [&](const PrivateRow& r) { return r.graph == graph && r.epsilon == epsilon; });
  return row == kPrivate.end() ? nullptr : row;
}

}  // namespace

std::span<const PaperMethod> PaperMethods() { return kMethods; }
std::span<const PaperMethod> PaperMethodsNoNoise() { return kMethodsNoNoise; }

std::optional<double> PaperAccuracy(absl::string_view graph, double epsilon, absl::string_view method) {
  if (const PrivateRow* row = FindRow(graph, epsilon); row != nullptr) {
    for (size_t i = 0; i < kMethods.size(); ++i) {
      if (kMethods[i].name == method) {
        return row->accuracy[i];
      }
    }
  }
  for (const NoNoiseRow& row : kNoNoise) {
    for (size_t i = 0; i < kMethodsNoNoise.size(); ++i) {
      if (epsilon == 0 && row.graph == graph && kMethodsNoNoise[i].name == method) {
        return row.accuracy[i];
      }
    }
  }
  return std::nullopt;
}

std::optional<double> PaperAccuracy(absl::string_view graph, double epsilon, v1::Method method) {
  for (const PaperMethod& column : kMethods) {
    if (column.method == method) {
      return PaperAccuracy(graph, epsilon, column.name);
    }
  }
  return std::nullopt;
}

std::optional<double> BestPaperAccuracy(absl::string_view graph, double epsilon) {
  const PrivateRow* row = FindRow(graph, epsilon);
  return row == nullptr ? std::nullopt : std::optional(*std::max_element(row->accuracy.begin(), row->accuracy.end()));
}

}  // namespace dpar::lab
