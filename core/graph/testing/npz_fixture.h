// Good and hostile npz files for tests.
#ifndef DPAR_CORE_GRAPH_TESTING_NPZ_FIXTURE_H_
#define DPAR_CORE_GRAPH_TESTING_NPZ_FIXTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/npz.h"

namespace dpar::testing {

// A path that no other test uses, in a directory that is removed when the test program ends.
std::string TestPath(const std::string& name);

std::string ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

// A zip with these entries, in this order, whatever they hold. Ends the test program when it cannot be written.
void WriteRawZip(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries);

// One npy file of format version 1.0 with this dictionary.
std::string RawNpy(const std::string& dictionary, const std::string& payload);
// The usual dictionary: RawNpyOf("<i4", "(3,)", ...).
std::string RawNpyOf(const std::string& descr, const std::string& shape, const std::string& payload);

template <typename Entry>
std::string BytesOf(const std::vector<Entry>& entries) {
  return std::string(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(Entry));
}

template <typename Entry>
NpyArray VectorArray(std::vector<Entry> entries) {
  return NpyArray{{static_cast<int64_t>(entries.size())}, std::move(entries)};
}

absl::Status WriteArrays(const std::string& path, const std::map<std::string, NpyArray>& arrays);

// "INVALID_ARGUMENT INVALID_GRAPH array=adj_data position=3": code, reason and metadata in the order of their keys.
std::string Summary(const absl::Status& status);

}  // namespace dpar::testing

#endif  // DPAR_CORE_GRAPH_TESTING_NPZ_FIXTURE_H_
