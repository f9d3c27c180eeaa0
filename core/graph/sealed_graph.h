// A dataset's graph on disk (sealed_format.h): mapped compressed rows with 32-bit ids and 64-bit offsets.
// Opening reads one page. Each section is verified once, on first use, in linear time and no memory: its checksum, and
// its structure, so that even a file made with right checksums leads no reader out of bounds. The kernel takes pages
// back when it needs them, so a graph may be larger than memory. Writing streams through one buffer. Not verified is
// that every edge is there from both ends: it takes a search for each, and no reader leaves its bounds without it. A
// sealed file is replaced, never changed. If it is shortened under the mapping, or the disk fails after a section was
// verified, the kernel ends the reading process (SIGBUS).
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

// Writes atomically and durably; the same graph gives the same bytes. INVALID_ARGUMENT / INVALID_GRAPH if arrays and
// sizes do not fit each other. CANCELLED, leaving no file, once `report` says no.
absl::Status WriteSealedGraph(const std::string& path, const GraphView& graph, const StageReport& report = AlwaysGoOn);

// Whether the file begins as a sealed graph does; it may still be damaged.
bool IsSealedGraph(const std::string& path);

// Views point into the mapping and last as long as it, also when it is moved. Everything but moving is thread-safe.
// NOT_FOUND / RESOURCE_NOT_FOUND for a file that cannot be opened; DATA_LOSS / STORE_CORRUPT for a damaged one, with
// the section, "header" or "file" in the metadata; FAILED_PRECONDITION / STORE_CORRUPT for a newer format.
class SealedGraph {
 public:
  // Checks the header, and that sizes, sections and the length of the file agree.
  static absl::StatusOr<SealedGraph> Open(const std::string& path);

  SealedGraph(SealedGraph&& other) noexcept;
  SealedGraph& operator=(SealedGraph&& other) noexcept;
  ~SealedGraph();

  [[nodiscard]] const PublicSizes& sizes() const;

  // Does not verify features and labels.
  [[nodiscard]] absl::StatusOr<EdgesView> Edges() const;

  // Asks `keep_going`, from several threads, at least every 256 KB or 65,536 entries verified. CANCELLED once it says
  // no; unfinished sections are verified again the next time.
  [[nodiscard]] absl::StatusOr<GraphView> View(const std::function<bool()>& keep_going = [] { return true; }) const;

  // Verifies every section. Returns the first fault in the order of the file.
  [[nodiscard]] absl::Status Check() const;

 private:
  struct State;
  explicit SealedGraph(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_SEALED_GRAPH_H_
