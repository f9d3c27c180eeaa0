#include "core/plan/method.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace dpar {
namespace {

// These texts are part of the certificate's predicate type: changing one means a new version of it.
constexpr std::array<MethodTraits, 6> kMethods = {{
    {v1::FEATURES, "features", std::nullopt,
     "noisy gradient descent on the nodes' own features: each node's gradient is clipped, the sum is rounded to a "
     "lattice and Gaussian noise rounded to the same lattice is added at every step; no training edge is read"},
    {v1::DPAR_EM0, "dpar-em0", ApprMechanism::kEm0,
     "DP-APPR by the exponential mechanism: for seeds drawn uniformly over the slots, the largest entries of clipped "
     "personalised PageRank under Gumbel noise, with equal weights; then noisy gradient descent on those rows, in "
     "which "
     "a row that is null or lists a null slot contributes nothing"},
    {v1::DPAR_EM1, "dpar-em1", ApprMechanism::kEm1,
     "DP-APPR by the exponential mechanism: for seeds drawn uniformly over the slots, the largest entries of clipped "
     "personalised PageRank under Gumbel noise, with weights under Laplace noise; then noisy gradient descent on those "
     "rows, in which a row that is null or lists a null slot contributes nothing"},
    {v1::DPAR_GM, "dpar-gm", ApprMechanism::kGm,
     "DP-APPR by the Gaussian mechanism: for seeds drawn uniformly over the slots, the largest entries of clipped "
     "personalised PageRank under Gaussian noise; then noisy gradient descent on those rows, in which a row that is "
     "null or lists a null slot contributes nothing"},
    {v1::GAP, "gap", std::nullopt,
     "aggregation perturbation: an encoder by noisy gradient descent on the nodes' own features; then, hop after hop, "
     "rows of unit length are summed over neighbours, every slot's sum is clipped and Gaussian noise is added to it on "
     "a "
     "lattice; then noisy gradient descent on each node's own encoding and its noisy sums",
     /*reads_edges=*/true},
    {v1::SAGE, "sage", std::nullopt,
     "one-layer GraphSAGE: noisy gradient descent on rows of a node's own features and the mean of those of sampled "
     "neighbours, in which a removed node takes away its own row and changes those of its neighbours",
     /*reads_edges=*/true},
}};

}  // namespace

std::span<const MethodTraits> Methods() { return kMethods; }

const MethodTraits* FindMethod(v1::Method method) {
  const auto* found = std::find_if(kMethods.begin(), kMethods.end(),
                                   [method](const MethodTraits& traits) { return traits.method == method; });
  return found == kMethods.end() ? nullptr : found;
}

std::string MethodNames() {
  std::string names = "auto";
  for (const MethodTraits& traits : kMethods) {
    absl::StrAppend(&names, ", ", traits.name);
  }
  return names;
}

}  // namespace dpar
