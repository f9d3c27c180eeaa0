#include "tests/audit/audit.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/parallel.h"
#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/mean.h"
#include "core/train/train.h"
#include "tests/audit/distinguisher.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

using ::dpar::testing::FixedRandom;

// Runs that share a stream, so that what is drawn does not depend on the number of threads.
constexpr int64_t kRunsPerStream = 500;

uint64_t StreamOf(const Case& one, uint64_t seed, bool with, int64_t block) {
  uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a, the same on every machine
  for (const char c : absl::StrCat(one.mechanism, "/", one.input, "/", seed, "/", with ? 1 : 0, "/", block)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return hash;
}

Releases Draw(const Case& one, bool with, const AuditOptions& options, double fault) {
  const int64_t runs = one.runs * options.effort;
  Releases releases(runs, static_cast<Eigen::Index>(one.width));
  std::vector<Release> makers;
  for (int i = 0; i < options.threads; ++i) {
    makers.push_back(one.make(with, fault));
  }
  ParallelFor((runs + kRunsPerStream - 1) / kRunsPerStream, options.threads, [&](int worker, int64_t block) {
    FixedRandom random(StreamOf(one, options.seed, with, block));
    for (int64_t run = block * kRunsPerStream; run < std::min(runs, (block + 1) * kRunsPerStream); ++run) {
      makers[static_cast<size_t>(worker)](random, {releases.row(run).data(), one.width});
    }
  });
  return releases;
}

}  // namespace

double Attack(const Case& one, const AuditOptions& options, double error, double fault) {
  return EpsilonAtLeast(Draw(one, true, options, fault), Draw(one, false, options, fault), kDelta, error);
}

std::vector<Finding> AttackAll(const std::vector<Case>& cases, const AuditOptions& options) {
  const double error = kFamilyError / static_cast<double>(cases.size());
  std::vector<Finding> findings;
  for (const Case& one : cases) {
    const double bound = Attack(one, options, error);
    findings.push_back(
        {one.mechanism, one.input, one.claim, bound, bound > one.claim, one.tight && bound < one.claim / 2});
  }
  return findings;
}

bool Passed(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.exceeded || finding.too_loose; });
}

std::string Table(const std::vector<Finding>& findings) {
  std::string table = absl::StrFormat("%-30s  %-16s  %6s  %11s  %5s  %s\n", "MECHANISM", "WITHOUT", "CLAIM",
                                      "LOWER BOUND", "RATIO", "VERDICT");
  for (const Finding& finding : findings) {
    const double ratio = finding.claim > 0 ? finding.bound / finding.claim : 0;
    const char* verdict = finding.exceeded ? "EXCEEDED" : (finding.too_loose ? "ATTACK TOO WEAK" : "holds");
    absl::StrAppendFormat(&table, "%-30s  %-16s  %6.3f  %11.3f  %5.2f  %s\n", finding.mechanism, finding.input,
                          finding.claim, finding.bound, ratio, verdict);
  }
  return table;
}

std::vector<Sharpness> SmallestFaults(const std::vector<Case>& cases, const AuditOptions& options,
                                      const std::vector<int64_t>& efforts) {
  constexpr int kSteps = 20;
  const double error = kFamilyError / static_cast<double>(cases.size());
  std::vector<Sharpness> mechanisms;
  for (const Case& one : cases) {
    const bool seen = std::any_of(mechanisms.begin(), mechanisms.end(),
                                  [&](const Sharpness& other) { return other.mechanism == one.mechanism; });
    if (!one.tight || seen) {
      continue;
    }
    Sharpness& sharpness = mechanisms.emplace_back(Sharpness{one.mechanism, one.input, {}});
    int found = 0;  // what fewer runs find, more do too
    for (const int64_t effort : efforts) {
      AuditOptions these = options;
      these.effort = effort;
      for (int missed = kSteps; missed - found > 1;) {
        const int middle = (found + missed) / 2;
        (Attack(one, these, error, static_cast<double>(middle) / kSteps) > one.claim ? found : missed) = middle;
      }
      sharpness.found.push_back(static_cast<double>(found) / kSteps);
    }
  }
  return mechanisms;
}

std::string Table(const std::vector<Sharpness>& mechanisms) {
  std::string table = absl::StrFormat("%-30s  %-16s  %10s  %10s\n", "SMALLEST FAULT FOUND", "WITHOUT", "QUICK", "FULL");
  for (const Sharpness& one : mechanisms) {
    absl::StrAppendFormat(&table, "%-30s  %-16s", one.mechanism, one.input);
    for (const double found : one.found) {
      absl::StrAppendFormat(&table, "  %10.2f", found);
    }
    table += "\n";
  }
  return table;
}

std::string CheckFreshNoise() {
  const Graph graph = GraphOf({{}, {}}, {}, 8, 2);
  v1::TrainingSpec spec = SpecOf(v1::FEATURES, 1);
  spec.mutable_options()->set_center(true);
  const v1::Plan plan = PlanFor(spec, graph.sizes);
  const TrainingCallbacks silent = {Always, [](TrainingStage, int64_t, int64_t) {}};
  SecureRandom one;
  SecureRandom other;
  const Model model = Must(Train(plan, graph, {}, one, silent)).model;
  const Model again = Must(Train(plan, graph, {}, other, silent)).model;
  return model.weights == again.weights ? "two runs of the production source gave the same noise" : "";
}

std::string CheckProgress() {
  using Call = std::tuple<TrainingStage, int64_t, int64_t>;
  const Neighbours graphs = Remove(GraphOf(std::vector<Node>(8), StarEdges(7), 1, 2), 0);
  for (const v1::Method method : {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM}) {
    v1::TrainingSpec spec = SpecOf(method, 1);
    spec.mutable_options()->set_steps(5);
    spec.mutable_evaluation()->set_held_out_share(0.25);
    spec.mutable_evaluation()->set_budget_share(0.1);
    const v1::Plan plan = PlanFor(spec, graphs.with.sizes);
    std::vector<std::vector<Call>> calls;
    for (const bool with : {true, false}) {
      std::vector<Call>& seen = calls.emplace_back();
      const TrainingCallbacks callbacks = {Always, [&seen](TrainingStage stage, int64_t completed, int64_t total) {
                                             seen.emplace_back(stage, completed, total);
                                           }};
      FixedRandom random(7);
      Must(Train(plan, graphs.of(with), {}, random, callbacks));
    }
    if (calls[0] != calls[1] || calls[0].empty()) {
      return "progress on two neighbouring graphs is not the same";
    }
  }
  return "";
}

}  // namespace dpar::audit
