#include "tests/lab/graph_split.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "tests/lab/region_split.h"
#include "tests/lab/run_program.h"
#include "tests/lab/slot_hash_split.h"

namespace dpar::lab {
namespace {

constexpr double kQueryShare = 0.2;
constexpr int kParts = 9;
constexpr int kQueryPart = 4;
constexpr int kLeftOutPart = 5;

absl::Status Failed(const std::string& what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::INTERNAL_FAULT, what);
}

// The graph as METIS reads it: nodes and edges counted, then each node's neighbours, from 1 on.
absl::Status WriteForMetis(const EdgesView& edges, const std::string& path) {
  std::string text = absl::StrCat(edges.node_count(), " ", edges.edge_count(), "\n");
  for (int64_t node = 0; node < edges.node_count(); ++node) {
    for (const int32_t neighbour : edges.neighbours_of(node)) {
      absl::StrAppend(&text, neighbour + 1, " ");
    }
    text += "\n";
  }
  std::ofstream stream(path, std::ios::binary);
  stream << text << std::flush;
  return stream ? absl::OkStatus() : Failed(absl::StrCat("cannot write '", path, "' for gpmetis"));
}

absl::StatusOr<SlotSplit> ReadParts(const std::string& path, int64_t node_count) {
  std::ifstream stream(path);
  SlotSplit split;
  for (int32_t node = 0; node < node_count; ++node) {
    int part = -1;
    if (!(stream >> part) || part < 0 || part >= kParts) {
      return Failed("gpmetis wrote no part for some node");
    }
    if (part != kLeftOutPart) {
      (part == kQueryPart ? split.test : split.train).push_back(node);
    }
  }
  if (split.test.empty() || split.train.empty()) {
    return Failed("the graph is too small for nine parts; use --split random");
  }
  return split;
}

absl::StatusOr<SlotSplit> SplitByPartition(const EdgesView& edges, int64_t seed) {
  std::string directory = (std::filesystem::temp_directory_path() / "dpar-lab-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    return Failed(absl::StrCat("cannot make a directory like '", directory, "' for gpmetis"));
  }
  const absl::Cleanup remove = [&directory] {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  };
  const std::string file = directory + "/graph";
  DPAR_RETURN_IF_ERROR(WriteForMetis(edges, file));
  const absl::Status run = RunProgram({"gpmetis", absl::StrCat("-seed=", seed), file, absl::StrCat(kParts)});
  if (!run.ok()) {
    return Failed(absl::StrCat("--split partition needs gpmetis of Debian's package metis: ", run.message()));
  }
  return ReadParts(absl::StrCat(file, ".part.", kParts), edges.node_count());
}

}  // namespace

std::string SplitName(SplitKind kind) {
  switch (kind) {
    case SplitKind::kRandom:
      return "random";
    case SplitKind::kPartition:
      return "partition";
    case SplitKind::kRegion:
      return "region";
  }
  return "";
}

absl::StatusOr<SplitKind> ParseSplit(const std::string& typed) {
  for (const SplitKind kind : {SplitKind::kRandom, SplitKind::kPartition, SplitKind::kRegion}) {
    if (typed == SplitName(kind)) {
      return kind;
    }
  }
  return InvalidField("split", absl::StrCat("split is random, partition or region; not '", typed, "'"));
}

absl::StatusOr<SlotSplit> SplitGraph(const EdgesView& edges, SplitKind kind, int64_t seed) {
  if (kind == SplitKind::kRegion) {
    return SplitByRegion(edges, static_cast<uint64_t>(seed));
  }
  return kind == SplitKind::kRandom ? SplitByHash(edges.node_count(), kQueryShare, static_cast<uint64_t>(seed))
                                    : SplitByPartition(edges, seed);
}

}  // namespace dpar::lab
