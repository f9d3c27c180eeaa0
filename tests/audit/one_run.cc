#include "tests/audit/one_run.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/graph/keep_slots.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/privacy/accountant.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/train.h"
#include "tests/audit/audit.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

using ::dpar::testing::FixedRandom;

constexpr double kOneRunDelta = 1e-6;  // the bound pays for it once a canary
constexpr int64_t kClasses = 2;
// A tenth of the canaries is guessed to be in, and a tenth to be out; about the others nothing is said.
constexpr int64_t kGuessShare = 10;

// Canaries come first, each with a feature column of its own and a label by a coin; behind them as many others, which
// share one column. Every canary has an edge to one of those, which has the same label: whichever of the two rows lists
// the canary speaks for that label in its column.
Graph CanaryGraph(int64_t canaries, RandomSource& random) {
  std::vector<Node> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < canaries; ++i) {
    nodes.push_back({static_cast<int32_t>(UniformBelow(random, kClasses)), i, 1});
    edges.emplace_back(i, i + static_cast<int32_t>(canaries));
  }
  for (size_t i = 0; i < static_cast<size_t>(canaries); ++i) {
    nodes.push_back({nodes[i].label, static_cast<int32_t>(canaries), 1});
  }
  return GraphOf(nodes, edges, canaries + 1, kClasses);
}

v1::Plan PlanOf(v1::Method method, double epsilon, const PublicSizes& sizes) {
  v1::TrainingSpec spec;
  spec.set_method(method);
  if (epsilon > 0) {
    spec.set_epsilon(epsilon);
    spec.set_delta(kOneRunDelta);
  } else {
    spec.set_non_private(true);
  }
  return PlanFor(spec, sizes);
}

// How much more the weights of a canary's own column speak for its label than for others.
double ScoreOf(const Model& model, int64_t canary, int32_t label) {
  double score = 0;
  for (int64_t k = 0; k < kClasses; ++k) {
    const double weight = model.weights[static_cast<size_t>(canary * kClasses + k)];
    score += k == label ? weight : -weight / static_cast<double>(kClasses - 1);
  }
  return score;
}

}  // namespace

double GuessingTail(int64_t canaries, int64_t guesses, int64_t right, double epsilon, double delta) {
  const boost::math::binomial_distribution<double> count(static_cast<double>(guesses), 1 / (1 + std::exp(-epsilon)));
  const double beta = right > 0 ? cdf(complement(count, static_cast<double>(right - 1))) : 1;
  double alpha = 0;
  double sum = 0;
  for (int64_t i = 1; i <= right; ++i) {
    sum += pdf(count, static_cast<double>(right - i));
    alpha = std::max(alpha, sum / static_cast<double>(i));
  }
  return std::min(1.0, beta + 2 * static_cast<double>(canaries) * delta * alpha);
}

double EpsilonFromGuesses(int64_t canaries, int64_t guesses, int64_t right, double delta, double error) {
  double low = 0;
  double high = 20;
  if (GuessingTail(canaries, guesses, right, low, delta) > error) {
    return 0;
  }
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    (GuessingTail(canaries, guesses, right, middle, delta) <= error ? low : high) = middle;
  }
  return low;
}

OneRun AuditInOneRun(v1::Method method, double epsilon, const OneRunOptions& options, double error) {
  FixedRandom random(options.seed * 1000 + static_cast<uint64_t>(method) * 100 + static_cast<uint64_t>(epsilon));
  const Graph whole = CanaryGraph(options.canaries, random);
  std::vector<bool> is_in;
  std::vector<int64_t> kept;
  for (int64_t slot = 0; slot < whole.sizes.node_count; ++slot) {
    is_in.push_back(slot >= options.canaries || UniformBelow(random, 2) == 1);
    if (is_in.back()) {
      kept.push_back(slot);
    }
  }
  const Graph graph = Must(KeepSlots(whole, kept, Always));
  const v1::Plan plan = PlanOf(method, epsilon, graph.sizes);
  const TrainingCallbacks silent = {Always, [](TrainingStage, int64_t, int64_t) {}};
  const Model model = Must(Train(plan, graph, {"cpu", options.threads}, random, silent)).model;

  std::vector<std::pair<double, int64_t>> scores;
  for (int64_t canary = 0; canary < options.canaries; ++canary) {
    scores.emplace_back(ScoreOf(model, canary, whole.labels[static_cast<size_t>(canary)]), canary);
  }
  std::sort(scores.begin(), scores.end());
  OneRun run;
  run.method = FindMethod(method)->name;
  run.claim = epsilon > 0 ? Must(EventEpsilon(plan.event(), kOneRunDelta)) : std::numeric_limits<double>::infinity();
  const auto each = static_cast<size_t>(options.canaries / kGuessShare);
  run.guesses = 2 * static_cast<int64_t>(each);
  for (size_t i = 0; i < each; ++i) {
    run.right += is_in[static_cast<size_t>(scores[i].second)] ? 0 : 1;
    run.right += is_in[static_cast<size_t>(scores[scores.size() - 1 - i].second)] ? 1 : 0;
  }
  run.bound = EpsilonFromGuesses(options.canaries, run.guesses, run.right, kOneRunDelta, error);
  return run;
}

std::vector<OneRun> OneRunAudits(const OneRunOptions& options) {
  const std::vector<v1::Method> methods = {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM};
  const std::vector<double> epsilons = {1, 4, 8, 0};
  std::vector<OneRun> runs;
  for (const v1::Method method : methods) {
    for (const double epsilon : epsilons) {
      runs.push_back(AuditInOneRun(method, epsilon, options,
                                   kFamilyError / static_cast<double>(methods.size() * epsilons.size())));
    }
  }
  return runs;
}

bool Passed(const std::vector<OneRun>& runs) {
  return std::none_of(runs.begin(), runs.end(), [](const OneRun& run) { return run.bound > run.claim; });
}

std::string Table(const std::vector<OneRun>& runs) {
  std::string table = absl::StrFormat("%-10s  %6s  %8s  %6s  %11s  %5s  %s\n", "ONE RUN", "CLAIM", "GUESSES", "RIGHT",
                                      "LOWER BOUND", "RATIO", "VERDICT");
  for (const OneRun& run : runs) {
    const bool noisy = std::isfinite(run.claim);
    absl::StrAppendFormat(&table, "%-10s  %6s  %8d  %6d  %11.3f  %5s  %s\n", run.method,
                          noisy ? absl::StrFormat("%.3f", run.claim) : "none", run.guesses, run.right, run.bound,
                          noisy ? absl::StrFormat("%.2f", run.bound / run.claim) : "",
                          run.bound > run.claim ? "EXCEEDED" : (noisy ? "holds" : "no noise, for comparison"));
  }
  return table;
}

}  // namespace dpar::audit
