// DP-APPR rows below the graph: from vectors as far apart as clipping leaves them, which no small graph has.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/appr/testing/unpriced_rows.h"
#include "core/privacy/accountant.h"
#include "core/privacy/gaussian.h"
#include "tests/audit/case.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

constexpr int64_t kRuns = 60'000;
constexpr double kClip = 0.3;

// Entries of 1, so that all of them are clipped.
SparseVector Ones(int32_t first, int32_t last) {
  SparseVector vector;
  for (int32_t id = first; id < last; ++id) {
    vector.ids.push_back(id);
    vector.values.push_back(1);
  }
  return vector;
}

// All M rows are `with` on the one graph and `without` on the other. A release holds for each row what is shown of the
// first half of the slots, and of the second.
Case ExtremalCase(const std::string& mechanism, const std::string& input, const PrivateRowsOptions& options,
                  int64_t nodes, const SparseVector& with, const SparseVector& without) {
  const double claim = Must(EventEpsilon(Must(PrivateRowsEvent(options, nodes)), kDelta));
  Case one = {mechanism, input, claim, true, kRuns, 2 * static_cast<size_t>(options.rows), {}};
  one.make = [=](bool is_with, double fault) {
    PrivateRowsOptions drawn = options;
    drawn.noise *= fault;
    drawn.value_noise *= fault;
    return [drawn, nodes, vector = is_with ? with : without](RandomSource& random, std::span<double> out) {
      std::fill(out.begin(), out.end(), 0.0);
      for (size_t row = 0; row < static_cast<size_t>(drawn.rows); ++row) {
        for (const SelectedEntry& entry : PrivateRow(drawn, nodes, vector, random)) {
          // Beyond the values that clipping leaves, Laplace noise tells nothing more.
          const double value =
              drawn.mechanism == ApprMechanism::kEm1 ? std::clamp(entry.value, 0.0, drawn.clip) : entry.value;
          out[2 * row + (entry.id < nodes / 2 ? 0 : 1)] += value;
        }
      }
    };
  };
  return one;
}

}  // namespace

std::vector<Case> ExtremalRowCases() {
  PrivateRowsOptions gm;
  gm.mechanism = ApprMechanism::kGm;
  gm.rows = 2;
  gm.k = 2;
  gm.clip = kClip;
  gm.noise = std::sqrt(2.0 * static_cast<double>(gm.rows)) * kClip / Must(GaussianMu(1, kDelta));

  PrivateRowsOptions em0;
  em0.mechanism = ApprMechanism::kEm0;
  em0.rows = 8;
  em0.k = 1;
  em0.clip = kClip;
  em0.noise = 6.5 * kClip;

  // All slots are chosen, so that the choice tells nothing and costs next to nothing.
  PrivateRowsOptions em1;
  em1.mechanism = ApprMechanism::kEm1;
  em1.rows = 2;
  em1.k = 2;
  em1.clip = kClip;
  em1.noise = 1e6 * kClip;
  em1.value_noise = 3.5 * kClip;

  return {ExtremalCase("GM rows", "disjoint rows", gm, 2, Ones(0, 1), Ones(1, 2)),
          ExtremalCase("EM0 rows", "disjoint rows", em0, 8, Ones(0, 4), Ones(4, 8)),
          ExtremalCase("EM1 rows", "full rows", em1, 2, Ones(0, 2), {})};
}

}  // namespace dpar::audit
