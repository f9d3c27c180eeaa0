// A dataset's graph on disk: compressed rows with 32-bit ids and 64-bit offsets, mapped into memory and read in place.
// The bytes are described in sealed_format.h.
//
// Opening reads one page, whatever the size of the graph. Each section is verified when it is first asked for, once:
// its checksum, and its structure, so that not even a file made with right checksums leads a reader out of bounds. That
// takes time in proportion to the section, and no memory: pages belong to the kernel, which takes them back when it
// needs them, so a graph may be larger than memory. Writing streams through one buffer.
//
// That every edge is there from both ends is not verified: it takes a search for every edge, no reader leaves its
// bounds without it, and whoever writes a sealed graph made a canonical one before.
//
// A sealed file is replaced, never changed. Where somebody shortens it under the mapping, or the disk fails after a
// section was verified, the kernel ends the process that reads there (SIGBUS).
#ifndef DPAR_CORE_GRAPH_SEALED_GRAPH_H_
#define DPAR_CORE_GRAPH_SEALED_GRAPH_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/stage.h"

namespace dpar {

// Writes atomically and durably. The same graph gives the same bytes. INVALID_ARGUMENT / INVALID_GRAPH when the arrays
// and the sizes of the graph do not fit each other. CANCELLED once `report` says no; no file is left then.
absl::Status WriteSealedGraph(const std::string& path, const GraphView& graph, const StageReport& report = AlwaysGoOn);

// Whether the file begins as a sealed graph does; no promise that it is a good one.
bool IsSealedGraph(const std::string& path);

// A sealed graph, open for reading. Its views point into the mapping and last as long as it, also when it is moved.
// Everything but moving is safe from many threads.
//
// A file that cannot be opened is NOT_FOUND / RESOURCE_NOT_FOUND; a damaged one DATA_LOSS / STORE_CORRUPT with the
// section, or "header" or "file", in the metadata; one of a newer format FAILED_PRECONDITION / STORE_CORRUPT.
class SealedGraph {
 public:
  // Checks the header, and that sizes, sections and the length of the file agree.
  static absl::StatusOr<SealedGraph> Open(const std::string& path);

  SealedGraph(SealedGraph&& other) noexcept;
  SealedGraph& operator=(SealedGraph&& other) noexcept;
  ~SealedGraph();

  [[nodiscard]] const PublicSizes& sizes() const;

  // The edges, without a look at features and labels.
  [[nodiscard]] absl::StatusOr<EdgesView> Edges() const;

  // Everything. `keep_going` is asked, from several threads, at least once for every 256 KB or 65,536 entries that are
  // verified; CANCELLED once it says no, and what was not verified to its end is verified again the next time.
  [[nodiscard]] absl::StatusOr<GraphView> View(const std::function<bool()>& keep_going = [] { return true; }) const;

  // Verifies every section. The first fault, in the order of the file, if there is one.
  [[nodiscard]] absl::Status Check() const;

 private:
  struct State;
  explicit SealedGraph(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_SEALED_GRAPH_H_
