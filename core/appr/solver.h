// Approximate personalised PageRank by l1 regularisation (Fountoulakis, Roosta-Khorasani, Shun, Cheng, Mahoney 2019).
//
// For a seed s on a graph with adjacency A and degrees D the vector is p = D^1/2 x, where x minimises
//   x^T Q x / 2 - alpha x^T D^-1/2 e_s + rho alpha |D^1/2 x|_1,   Q = (1+alpha)/2 I - (1-alpha)/2 D^-1/2 A D^-1/2.
// With the residual r = alpha e_s + (1-alpha)/2 A D^-1 p - (1+alpha)/2 p the optimum is where p >= 0, r_i = rho alpha
// d_i on the support and r_i <= rho alpha d_i off it. From p = 0 the solver takes exact steps in single coordinates
// whose residual is above (1 + gamma) rho alpha d_i, until there is none. Steps only raise p and the neighbours'
// residuals, so p grows towards the optimum from below. Column sums of Q in these coordinates are alpha, so the final
// l1 error is at most the residuals' excess over alpha: gamma rho times the support's volume, at most gamma.
//
// Time and memory follow the volume of the support (the sum of its nodes' degrees, at most 1 / rho): nodes are numbered
// as they are met, and no array has the graph's length. A row ends at `max_edges` edges at the latest, with the entries
// that it has reached by then.
#ifndef DPAR_CORE_APPR_SOLVER_H_
#define DPAR_CORE_APPR_SOLVER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace dpar {

struct ApprParameters {
  double alpha = 0.25;      // teleport probability, 1e-3 to below 1
  double rho = 1e-4;        // sparsity: larger gives smaller supports; 1e-12..1
  double gamma = 1e-4;      // relative tolerance of the optimality condition; 1e-12..1
  bool self_loops = false;  // adds an edge from every node to itself, as the paper's released code does
  int64_t max_edges = std::numeric_limits<int64_t>::max();  // visited for a row, each as often as it is
};

absl::Status ValidateParameters(const ApprParameters& parameters);  // INVALID_ARGUMENT names one

// Entries above 0, in no order.
struct SparseVector {
  std::vector<int32_t> ids;
  std::vector<double> values;
};

// Scratch memory for one thread, kept from row to row.
class ApprSolver {
 public:
  explicit ApprSolver(const ApprParameters& parameters);

  // A seed (0..N-1) without neighbours has the zero vector, unless there are self loops. Asks `keep_going` between
  // steps, after about a million edges or one node's neighbours, whichever are more; CANCELLED when it says no.
  absl::StatusOr<SparseVector> Solve(const EdgesView& edges, int64_t seed, const std::function<bool()>& keep_going);

  // Edges that the last row visited.
  [[nodiscard]] int64_t edges_visited() const { return edges_visited_; }

 private:
  // What a push to a node reads and writes: four to a cache line.
  struct Hot {
    double residual;  // less the threshold, once that is known: near the optimum the difference would lose its digits
    double limit;     // above which the node is queued; infinite while it is
  };
  struct Node {
    int32_t id = 0;
    int32_t bucket = 0;
    double value = 0;
    double threshold = 0;        // rho alpha d; 0 while the row has not been looked up
    int64_t first_edge = 0;      // its row in the graph
    int64_t edge_count = 0;      //
    int64_t neighbours_at = -1;  // where its neighbours' numbers start in neighbour_numbers_; -1 before its first step
  };

  void Clear();
  void GrowTable();
  uint32_t Number(int32_t id);
  void LookUpRows(const EdgesView& edges);
  void NumberNeighbours(const EdgesView& edges, uint32_t number);
  // False, and no step, when it would pass the ceiling.
  bool Step(const EdgesView& edges, uint32_t number);
  [[nodiscard]] SparseVector Reached() const;

  ApprParameters parameters_;
  std::vector<Hot> hot_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> neighbour_numbers_;
  std::vector<uint32_t> queue_;  // nodes to look at in this round
  std::vector<uint32_t> next_;   // and in the next
  std::vector<int64_t> table_;   // id and number of the nodes met, by a hash of the id; -1 is empty
  int64_t edges_visited_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CORE_APPR_SOLVER_H_
