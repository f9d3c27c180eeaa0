#include "core/plan/structure_work.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/appr/private_rows.h"
#include "core/error.h"
#include "core/plan/plan_event.h"

namespace dpar {
namespace {

// Of a private plan. A row of the smallest rho visits up to 8e7 edges at the default alpha.
constexpr double kSmallestRho = 1e-7;
// All rows together: 400 seconds of one core.
constexpr double kMostEdges = 2e10;
// For each edge of the ceiling. A visit takes 2 to 10 ns; the rest is for choosing among the entries that a hub makes,
// at 0.5 microseconds each and up to 0.03 entries an edge (docs/costs.md).
constexpr double kSecondsPerEdge = 20e-9;
// Of a solver: for a node met (its state, its place in the hash table, its entry and score; twice, as arrays grow), and
// for an edge of the support.
constexpr double kBytesPerNode = 320;
constexpr double kBytesPerEdge = 12;
constexpr double kBytesPerExactEntry = 32;
// Threads beyond the first share this.
constexpr double kScratchBytes = 1 << 30;

double RowEdges(const v1::Plan& plan) {
  return static_cast<double>(RowEdgeCeiling(StructureOptions(plan).solver, plan.training_slots()));
}

}  // namespace

StructureWork WorkOfStructure(const v1::Plan& plan, int threads) {
  // The nodes that a row steps from are in the optimum's support, whose volume is at most 1 / rho (core/appr/solver.h).
  const auto slots = static_cast<double>(plan.training_slots());
  const double volume = std::min(1 / plan.structure().rho(), slots * slots);
  const double bytes = std::min(slots, volume + 1) * kBytesPerNode + volume * kBytesPerEdge;
  StructureWork work;
  work.threads = static_cast<int>(std::clamp(kScratchBytes / bytes, 1.0, static_cast<double>(threads)));
  work.scratch_bytes =
      static_cast<int64_t>(work.threads * bytes +
                           (plan.non_private() ? kExactRowsAtOnce * std::min(slots, volume) * kBytesPerExactEntry : 0));
  // A row is one thread's.
  const int64_t rows_of_thread = (plan.structure().appr_nodes() + work.threads - 1) / work.threads;
  work.seconds = static_cast<double>(rows_of_thread) * RowEdges(plan) * kSecondsPerEdge;
  return work;
}

absl::Status CheckStructureWork(const v1::Plan& plan) {
  if (!plan.has_structure() || plan.non_private()) {
    return absl::OkStatus();
  }
  const v1::StructurePlan& structure = plan.structure();
  if (structure.rho() < kSmallestRho) {
    return InvalidField("options.rho", absl::StrFormat("options.rho must be at least %g: how long DP-APPR takes must "
                                                       "not follow private edges, so its work is bounded",
                                                       kSmallestRho));
  }
  if (static_cast<double>(structure.appr_nodes()) * RowEdges(plan) > kMostEdges) {
    return InvalidField(
        "options.appr_nodes",
        absl::StrFormat(
            "options.appr_nodes * 2 / (alpha rho) must be at most %g, got %g: DP-APPR always takes the time of "
            "its largest possible rows; choose fewer nodes, or a larger rho or alpha",
            kMostEdges, static_cast<double>(structure.appr_nodes()) * RowEdges(plan)));
  }
  return absl::OkStatus();
}

}  // namespace dpar
