#include "core/appr/private_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "core/appr/selection.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/mutex.h"
#include "core/parallel.h"
#include "core/privacy/event.h"
#include "core/random/lattice.h"
#include "core/random/repeated_random.h"
#include "core/random/subsets.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kClipGuard = 1 - 0x1p-27;  // rounding of a norm over up to 2^25 entries, and the division by it
constexpr size_t kRowsPerBlock = 1024;
constexpr int64_t kMaxEntries = 100'000'000;  // of all rows together
// A row's entries sum to at most 1, so a clip above 1 clips nothing; the upper bound keeps arithmetic finite.
constexpr double kSmallestClip = 1e-12;
constexpr double kLargestClip = 1e6;
constexpr double kMaxClipOverNoise = 0x1p20;  // so that clipped values in lattice steps are exact in a double
constexpr double kMaxNoiseOverClip = 1e9;

absl::Status ValidateNoise(absl::string_view field, double noise, double clip) {
  DPAR_RETURN_IF_ERROR(ValidatePositive(field, noise));
  if (noise * kMaxClipOverNoise < clip || noise > kMaxNoiseOverClip * clip) {
    return InvalidField(field, absl::StrCat(field, " must be between clip / 2^20 and 1e9 clip"));
  }
  return absl::OkStatus();
}

// Renames an event's error after the option that caused it.
absl::StatusOr<v1::PrivacyEvent> NameOption(absl::string_view field, absl::StatusOr<v1::PrivacyEvent> event) {
  if (!event.ok()) {
    return InvalidField(field, absl::StrCat(field, " has no price at this clip: ", event.status().message()));
  }
  return event;
}

absl::Status Validate(const PrivateRowsOptions& options, int64_t node_count) {
  DPAR_RETURN_IF_ERROR(ValidateParameters(options.solver));
  if (node_count < 1) {
    return InvalidField("graph", "the graph has no nodes");
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("rows", options.rows, int64_t{1}, node_count));
  DPAR_RETURN_IF_ERROR(ValidateRange("k", options.k, int64_t{1}, node_count));
  if (options.k > kMaxEntries / options.rows) {
    return InvalidField("k", absl::StrCat("rows * k must be at most ", kMaxEntries));
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("clip", options.clip, kSmallestClip, kLargestClip));
  DPAR_RETURN_IF_ERROR(ValidateNoise("noise", options.noise, options.clip));
  if (options.mechanism != ApprMechanism::kEm1) {
    return options.value_noise == 0 ? absl::OkStatus()
                                    : InvalidField("value_noise", "value_noise belongs to EM1; it must be 0");
  }
  return ValidateNoise("value_noise", options.value_noise, options.clip);
}

double Norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// Algorithm 3. Chooses by the noisy values before rounding, as the ideal mechanism on the truncated row does.
std::vector<SelectedEntry> GaussianRow(const PrivateRowsOptions& options, int64_t node_count, SparseVector row,
                                       RandomSource& random) {
  const double scale = std::min(1.0, kClipGuard * options.clip / Norm(row.values));
  const double step = LatticeStep(options.noise, kApprLatticeBits);
  for (double& value : row.values) {
    value = TruncateToLattice(value * scale, step);
  }
  std::vector<SelectedEntry> entries =
      SelectTopK(row, node_count, options.k, ScoreNoise::kGaussian, options.noise, random);
  const double steps_per_noise = StepsPerScale(options.noise, kApprLatticeBits);
  for (SelectedEntry& entry : entries) {
    entry.value = AddNoiseSteps(entry.value, entry.score.NoiseSteps(steps_per_noise, random), step);
  }
  return entries;
}

// Algorithm 1, options I and II.
std::vector<SelectedEntry> ExponentialRow(const PrivateRowsOptions& options, int64_t node_count, SparseVector row,
                                          RandomSource& random) {
  for (double& value : row.values) {
    value = std::min(value, options.clip);
  }
  std::vector<SelectedEntry> entries =
      SelectTopK(row, node_count, options.k, ScoreNoise::kGumbel,
                 DPAR_FAULT(kHalfSelectionNoise, options.noise / 2, options.noise), random);
  if (options.mechanism == ApprMechanism::kEm0) {
    for (SelectedEntry& entry : entries) {
      entry.value = 1 / static_cast<double>(options.k);
    }
    return entries;
  }
  const double step = LatticeStep(options.value_noise, kApprLatticeBits);
  std::vector<double> values;
  values.reserve(entries.size());
  for (const SelectedEntry& entry : entries) {
    values.push_back(TruncateToLattice(entry.value, step));
  }
  AddLatticeLaplace(random, DPAR_FAULT(kHalfValueNoise, options.value_noise / 2, options.value_noise), kApprLatticeBits,
                    values);
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].value = values[i];
  }
  return entries;
}

using Row = std::vector<std::pair<int32_t, double>>;

ApprRows Assemble(int64_t node_count, std::vector<int32_t> seeds, std::vector<Row> rows) {
  ApprRows result;
  result.node_count = node_count;
  result.seeds = std::move(seeds);
  for (Row& row : rows) {
    std::sort(row.begin(), row.end());
    for (const auto& [id, value] : row) {
      result.columns.push_back(id);
      result.values.push_back(value);
    }
    result.offsets.push_back(static_cast<int64_t>(result.columns.size()));
  }
  return result;
}

class RowMaker {
 public:
  using MakeRow =
      std::function<absl::StatusOr<Row>(size_t index, ApprSolver& solver, const std::function<bool()>& keep_going)>;

  RowMaker(const ApprParameters& parameters, size_t row_count, int threads, const RowsCallback& callback)
      : callback_(callback), rows_(row_count), workers_(static_cast<size_t>(threads), Worker{ApprSolver(parameters)}) {}

  absl::Status Make(size_t first, size_t last, const MakeRow& make_row) {
    const auto keep_going = [this] { return !stopped_ && callback_(rows_done_); };
    ParallelFor(static_cast<int64_t>(last - first), static_cast<int>(workers_.size()), [&](int worker, int64_t i) {
      if (stopped_) {
        return;
      }
      const size_t index = first + static_cast<size_t>(i);
      absl::StatusOr<Row> row = make_row(index, workers_[static_cast<size_t>(worker)].solver, keep_going);
      if (!row.ok()) {
        Stop(row.status());
        return;
      }
      rows_[index] = *std::move(row);
      if (!callback_(++rows_done_)) {
        Stop(absl::CancelledError("cancelled"));
      }
    });
    const MutexLock lock(&mutex_);
    return status_;
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  // Own cache lines, so that threads do not wait for each other.
  struct alignas(128) Worker {
    ApprSolver solver;
  };

  void Stop(const absl::Status& status) {
    const MutexLock lock(&mutex_);
    status_.Update(status);
    stopped_ = true;
  }

  const RowsCallback& callback_;
  std::vector<Row> rows_;
  std::vector<Worker> workers_;
  std::atomic<int64_t> rows_done_ = 0;
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

int64_t RowEdgeCeiling(const ApprParameters& parameters, int64_t node_count) {
  // Eight sweeps over the densest graph: where that is less than 1 / rho, a row may reach everything.
  constexpr double kSweeps = 8;
  constexpr double kAllowance = 2;
  const auto nodes = static_cast<double>(node_count);
  constexpr double kMost = 0x1p62;
  return static_cast<int64_t>(
      std::min(kMost, std::min(1 / parameters.rho, kSweeps * nodes * nodes) * kAllowance / parameters.alpha));
}

absl::StatusOr<v1::PrivacyEvent> PrivateRowsEvent(const PrivateRowsOptions& options, int64_t node_count) {
  DPAR_RETURN_IF_ERROR(Validate(options, node_count));
  if (options.mechanism == ApprMechanism::kGm) {
    const double sensitivity =
        std::sqrt(DPAR_FAULT(kRowsMoveOnce, 1, 2) * static_cast<double>(options.rows)) * options.clip;
    return NameOption("noise", MakeGaussianEvent(std::nextafter(sensitivity, HUGE_VAL), options.noise, 1));
  }
  const int64_t selections = options.rows * options.k;
  const double range = std::nextafter(2 * options.clip / options.noise, HUGE_VAL);
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent selection, NameOption("noise", MakeBoundedRangeEvent(range)));
  DPAR_ASSIGN_OR_RETURN(v1::PrivacyEvent all_selections, MakeRepetitionEvent(selections, selection));
  if (options.mechanism == ApprMechanism::kEm0) {
    return all_selections;
  }
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent value,
                        NameOption("value_noise", MakeLaplaceEvent(options.clip, options.value_noise)));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent all_values, MakeRepetitionEvent(selections, value));
  return MakeCompositionEvent({all_selections, all_values});
}

std::vector<int32_t> DrawSeeds(int64_t node_count, int64_t rows, RandomSource& random) {
  const std::vector<int64_t> drawn = SampleWithoutReplacement(random, node_count, rows);
  return std::vector<int32_t>(drawn.begin(), drawn.end());
}

// Declared for tests in core/appr/testing/unpriced_rows.h.
std::vector<SelectedEntry> PrivateRow(const PrivateRowsOptions& options, int64_t node_count, SparseVector row,
                                      RandomSource& random) {
  return options.mechanism == ApprMechanism::kGm ? GaussianRow(options, node_count, std::move(row), random)
                                                 : ExponentialRow(options, node_count, std::move(row), random);
}

#ifdef DPAR_TEST_SEAMS
// For a fault: every second stream repeats the one before it.
static std::unique_ptr<RandomSource> PairedStream(const std::vector<std::unique_ptr<RandomSource>>& streams,
                                                  RandomSource& random) {
  return streams.size() % 2 == 1 ? static_cast<const RepeatedRandom&>(*streams.back()).Twin()
                                 : std::make_unique<RepeatedRandom>(random.Split());
}
#endif

// No price check; declared for tests in core/appr/testing/unpriced_rows.h.
absl::StatusOr<ApprRows> DrawUnpricedRows(const GraphView& graph, const PrivateRowsOptions& options, int threads,
                                          RandomSource& random, const RowsCallback& callback) {
  const int64_t node_count = graph.sizes.node_count;
  DPAR_RETURN_IF_ERROR(Validate(options, node_count));
  std::vector<int32_t> seeds = DrawSeeds(node_count, options.rows, random);
  ApprParameters solver_parameters = options.solver;
  solver_parameters.max_edges = RowEdgeCeiling(options.solver, node_count);
  RowMaker maker(solver_parameters, seeds.size(), threads, callback);
  // Blocks, since every row's stream is made before its block starts.
  for (size_t first = 0; first < seeds.size(); first += kRowsPerBlock) {
    const size_t last = std::min(first + kRowsPerBlock, seeds.size());
    std::vector<std::unique_ptr<RandomSource>> streams;
    for (size_t i = first; i < last; ++i) {
      streams.push_back(DPAR_FAULT(kReusedRowNoise, PairedStream(streams, random), random.Split()));
    }
    const auto make_row = [&](size_t i, ApprSolver& solver,
                              const std::function<bool()>& keep_going) -> absl::StatusOr<Row> {
      SparseVector exact;
      if (!graph.IsNull(seeds[i])) {
        DPAR_ASSIGN_OR_RETURN(exact, solver.Solve(graph.edges, seeds[i], keep_going));
      }
      Row row;
      for (const SelectedEntry& entry : PrivateRow(options, node_count, std::move(exact), *streams[i - first])) {
        row.emplace_back(entry.id, entry.value);
      }
      return row;
    };
    DPAR_RETURN_IF_ERROR(maker.Make(first, last, make_row));
  }
  return Assemble(node_count, std::move(seeds), maker.Take());
}

absl::StatusOr<PrivateRows> DrawPrivateRows(const GraphView& graph, const PrivateRowsOptions& options, int threads,
                                            RandomSource& random, const RowsCallback& callback) {
  PrivateRows result;
  DPAR_ASSIGN_OR_RETURN(result.event, PrivateRowsEvent(options, graph.sizes.node_count));
  DPAR_ASSIGN_OR_RETURN(result.rows, DrawUnpricedRows(graph, options, threads, random, callback));
  return result;
}

absl::StatusOr<ApprRows> SolveRows(const EdgesView& edges, const ApprParameters& parameters,
                                   const std::vector<int32_t>& seeds, int threads, const RowsCallback& callback) {
  DPAR_RETURN_IF_ERROR(ValidateParameters(parameters));
  RowMaker maker(parameters, seeds.size(), threads, callback);
  const auto make_row = [&](size_t i, ApprSolver& solver,
                            const std::function<bool()>& keep_going) -> absl::StatusOr<Row> {
    DPAR_ASSIGN_OR_RETURN(const SparseVector exact, solver.Solve(edges, seeds[i], keep_going));
    Row row;
    for (size_t j = 0; j < exact.ids.size(); ++j) {
      row.emplace_back(exact.ids[j], exact.values[j]);
    }
    return row;
  };
  DPAR_RETURN_IF_ERROR(maker.Make(0, seeds.size(), make_row));
  return Assemble(edges.node_count(), seeds, maker.Take());
}

}  // namespace dpar
