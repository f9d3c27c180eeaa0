#include "core/appr/solver.h"

#include <limits>
#include <span>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kSmallestAlpha = 1e-3;
constexpr double kSmallestRho = 1e-12;
constexpr double kSmallestGamma = 1e-12;
constexpr size_t kFirstTableSize = 1U << 12U;
constexpr size_t kPrefetchDistance = 8;
constexpr int64_t kVisitsBetweenQuestions = 1 << 20;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Abseil seeds its hash per process, so nobody can choose ids that collide.
size_t FirstBucket(int32_t id, size_t table_size) { return absl::HashOf(id) & (table_size - 1); }

int64_t TableEntry(int32_t id, uint32_t number) { return (int64_t{id} << 32U) | number; }

}  // namespace

absl::Status ValidateParameters(const ApprParameters& parameters) {
  DPAR_RETURN_IF_ERROR(ValidateProbability("alpha", parameters.alpha));
  DPAR_RETURN_IF_ERROR(ValidateRange("alpha", parameters.alpha, kSmallestAlpha, 1.0));
  DPAR_RETURN_IF_ERROR(ValidateRange("rho", parameters.rho, kSmallestRho, 1.0));
  return ValidateRange("gamma", parameters.gamma, kSmallestGamma, 1.0);
}

ApprSolver::ApprSolver(const ApprParameters& parameters) : parameters_(parameters), table_(kFirstTableSize, -1) {}

absl::StatusOr<SparseVector> ApprSolver::Solve(const EdgesView& edges, int64_t seed,
                                               const std::function<bool()>& keep_going) {
  if (edges.node_count() < 1) {
    return InvalidField("seed", "the graph has no nodes, so there is no seed");
  }
  if (seed < 0 || seed >= edges.node_count()) {
    return InvalidField("seed", absl::StrCat("the seed must be a node, 0 to ", edges.node_count() - 1, ", got ", seed));
  }
  Clear();
  if (!parameters_.self_loops && edges.neighbours_of(seed).empty()) {
    return SparseVector();
  }
  const uint32_t first = Number(static_cast<int32_t>(seed));
  hot_[first].residual = parameters_.alpha;
  queue_.push_back(first);
  int64_t next_question = kVisitsBetweenQuestions;
  while (!queue_.empty()) {
    LookUpRows(edges);
    for (const uint32_t number : queue_) {
      if (!Step(edges, number)) {
        return Reached();
      }
      if (edges_visited_ > next_question) {
        next_question = edges_visited_ + kVisitsBetweenQuestions;
        if (!keep_going()) {
          return absl::CancelledError("cancelled");
        }
      }
    }
    queue_.clear();
    std::swap(queue_, next_);
  }
  return Reached();
}

SparseVector ApprSolver::Reached() const {
  SparseVector result;
  for (const Node& node : nodes_) {
    if (node.value > 0) {
      result.ids.push_back(node.id);
      result.values.push_back(node.value);
    }
  }
  return result;
}

void ApprSolver::Clear() {
  for (const Node& node : nodes_) {
    table_[static_cast<size_t>(node.bucket)] = -1;
  }
  hot_.clear();
  nodes_.clear();
  neighbour_numbers_.clear();
  queue_.clear();
  next_.clear();
  edges_visited_ = 0;
}

// Keeps the table at most half full.
void ApprSolver::GrowTable() {
  table_.assign(2 * table_.size(), -1);
  for (size_t number = 0; number < nodes_.size(); ++number) {
    Node& node = nodes_[number];
    size_t bucket = FirstBucket(node.id, table_.size());
    while (table_[bucket] >= 0) {
      bucket = (bucket + 1) & (table_.size() - 1);
    }
    table_[bucket] = TableEntry(node.id, static_cast<uint32_t>(number));
    node.bucket = static_cast<int32_t>(bucket);
  }
}

// A new node has the limit of degree 1. Most never reach it, so their degrees, each a cache miss, are never read.
uint32_t ApprSolver::Number(int32_t id) {
  size_t bucket = FirstBucket(id, table_.size());
  for (; table_[bucket] >= 0; bucket = (bucket + 1) & (table_.size() - 1)) {
    if (table_[bucket] >> 32U == id) {
      return static_cast<uint32_t>(table_[bucket]);
    }
  }
  const auto number = static_cast<uint32_t>(nodes_.size());
  table_[bucket] = TableEntry(id, number);
  const double smallest_degree = parameters_.self_loops ? 2 : 1;
  hot_.push_back({0, (1 + parameters_.gamma) * parameters_.rho * parameters_.alpha * smallest_degree});
  nodes_.push_back({.id = id, .bucket = static_cast<int32_t>(bucket)});
  if (2 * nodes_.size() > table_.size()) {
    GrowTable();
  }
  return number;
}

// Looks up the rows of queued nodes, whose addresses were prefetched, and prefetches the rows: cache misses overlap.
void ApprSolver::LookUpRows(const EdgesView& edges) {
  for (const uint32_t number : queue_) {
    Node& node = nodes_[number];
    if (node.threshold > 0) {
      continue;
    }
    const auto id = static_cast<size_t>(node.id);
    node.first_edge = edges.offsets[id];
    node.edge_count = edges.offsets[id + 1] - node.first_edge;
    const int64_t degree = node.edge_count + (parameters_.self_loops ? 1 : 0);
    node.threshold = parameters_.rho * parameters_.alpha * static_cast<double>(degree);
    hot_[number].residual -= node.threshold;
    if (hot_[number].residual > parameters_.gamma * node.threshold) {
      __builtin_prefetch(edges.neighbours.data() + node.first_edge);
    }
  }
}

void ApprSolver::NumberNeighbours(const EdgesView& edges, uint32_t number) {
  nodes_[number].neighbours_at = static_cast<int64_t>(neighbour_numbers_.size());
  const std::span<const int32_t> ids = edges.neighbours.subspan(static_cast<size_t>(nodes_[number].first_edge),
                                                                static_cast<size_t>(nodes_[number].edge_count));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kPrefetchDistance < ids.size()) {
      __builtin_prefetch(&table_[FirstBucket(ids[i + kPrefetchDistance], table_.size())]);
    }
    neighbour_numbers_.push_back(Number(ids[i]));
  }
}

// Brings the node's residual down to its threshold, if it is above its limit.
bool ApprSolver::Step(const EdgesView& edges, uint32_t number) {
  hot_[number].limit = parameters_.gamma * nodes_[number].threshold;
  const double excess = hot_[number].residual;
  if (excess <= hot_[number].limit) {
    return true;
  }
  if (nodes_[number].edge_count > parameters_.max_edges - edges_visited_) {
    return false;
  }
  if (nodes_[number].neighbours_at < 0) {
    NumberNeighbours(edges, number);
  }
  Node& node = nodes_[number];
  const double degree = static_cast<double>(node.edge_count) + (parameters_.self_loops ? 1 : 0);
  const double share = (1 - parameters_.alpha) / (2 * degree);
  const double diagonal = (1 + parameters_.alpha) / 2 - (parameters_.self_loops ? share : 0);
  const double step = excess / diagonal;
  node.value += step;
  hot_[number].residual = 0;
  const double spread = share * step;
  const auto neighbours = std::span<const uint32_t>(neighbour_numbers_)
                              .subspan(static_cast<size_t>(node.neighbours_at), static_cast<size_t>(node.edge_count));
  for (const uint32_t neighbour : neighbours) {
    Hot& hot = hot_[neighbour];
    hot.residual += spread;
    if (hot.residual > hot.limit) {
      hot.limit = kInfinity;
      next_.push_back(neighbour);
      __builtin_prefetch(&edges.offsets[static_cast<size_t>(nodes_[neighbour].id)]);
    }
  }
  edges_visited_ += node.edge_count;
  return true;
}

}  // namespace dpar
