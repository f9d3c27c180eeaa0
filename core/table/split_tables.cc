#include "core/table/split_tables.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/split.h"
#include "core/graph/text_output.h"
#include "core/status_macros.h"
#include "core/table/id_index.h"
#include "core/table/table_reader.h"

namespace dpar {
namespace {

std::string PathIn(const std::string& directory, const std::string& file) {
  std::string name = std::filesystem::path(file).filename().string();
  if (absl::EndsWith(name, ".gz")) {
    name.resize(name.size() - 3);
  }
  return (std::filesystem::path(directory) / name).string();
}

// Also if neither is there yet, or if a link leads to it.
bool IsSamePath(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) {
    return true;
  }
  const std::filesystem::path first = std::filesystem::weakly_canonical(std::filesystem::absolute(a, error), error);
  return first == std::filesystem::weakly_canonical(std::filesystem::absolute(b, error), error);
}

std::filesystem::path DirectoryOf(const std::string& file) {
  const std::filesystem::path parent = std::filesystem::path(file).parent_path();
  return parent.empty() ? "." : parent;
}

absl::StatusOr<size_t> NeedColumn(const TableReader& table, const std::string& name) {
  const std::optional<size_t> found = table.FindColumn(name);
  return found.has_value() ? absl::StatusOr<size_t>(*found)
                           : table.RefuseColumn(name, "the schema names it, and the table does not have it");
}

absl::StatusOr<IdIndex> ReadIds(const TableSchema& schema, const std::string& path) {
  DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(path));
  DPAR_ASSIGN_OR_RETURN(const size_t id, NeedColumn(table, schema.id));
  IdIndex ids;
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
    if (!found) {
      return ids;
    }
    if (!ids.Add(table.fields()[id]).has_value()) {
      return table.RefuseColumn(schema.id, absl::StrCat("the id ", ShownCell(table.fields()[id]), " stands twice"));
    }
  }
}

// The parts of one table, begun with its header.
struct Parts {
  TextOutput train;
  TextOutput test;

  static absl::StatusOr<Parts> Create(const TableReader& table, const std::string& train, const std::string& test) {
    DPAR_ASSIGN_OR_RETURN(TextOutput train_output, TextOutput::Create(train));
    DPAR_ASSIGN_OR_RETURN(TextOutput test_output, TextOutput::Create(test));
    Parts parts{std::move(train_output), std::move(test_output)};
    parts.train.Add(absl::StrCat(table.header_record(), "\n"));
    parts.test.Add(absl::StrCat(table.header_record(), "\n"));
    return parts;
  }

  void Add(bool is_test, absl::string_view record) { (is_test ? test : train).Add(absl::StrCat(record, "\n")); }

  absl::Status Finish() {
    DPAR_RETURN_IF_ERROR(train.Finish());
    return test.Finish();
  }
};

}  // namespace

absl::Status CheckSplitOutputs(const TableFiles& files, const std::string& train_directory,
                               const std::string& test_directory) {
  for (const std::string& target : {train_directory, test_directory}) {
    const char* const flag = target == train_directory ? "train" : "test";
    for (const std::string& table : {files.nodes, files.edges}) {
      if (IsSamePath(target, DirectoryOf(table))) {
        return InvalidField(flag, absl::StrCat("'", target, "' holds the tables; choose another directory"));
      }
    }
  }
  if (IsSamePath(train_directory, test_directory)) {
    return InvalidField("test", "--train and --test name the same directory");
  }
  const std::vector<std::string> outputs = {PathIn(train_directory, files.nodes), PathIn(train_directory, files.edges),
                                            PathIn(test_directory, files.nodes), PathIn(test_directory, files.edges)};
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const std::string& table : {files.nodes, files.edges}) {
      if (IsSamePath(outputs[i], table)) {
        return InvalidField(i < 2 ? "train" : "test", absl::StrCat("'", outputs[i], "' would overwrite the table '",
                                                                   table, "'; choose another directory"));
      }
    }
    for (size_t other = 0; other < i; ++other) {
      if (IsSamePath(outputs[i], outputs[other])) {
        return InvalidField("edges", absl::StrCat("two parts would be written to '", outputs[i],
                                                  "', since files keep their names; rename one of the tables"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TableSplit> SplitTables(const TableSchema& schema, const TableFiles& files, double test_share,
                                       RandomSource& random, const std::string& train_directory,
                                       const std::string& test_directory) {
  DPAR_RETURN_IF_ERROR(CheckSplitOutputs(files, train_directory, test_directory));
  DPAR_ASSIGN_OR_RETURN(const IdIndex ids, ReadIds(schema, files.nodes));
  DPAR_ASSIGN_OR_RETURN(const SlotSplit slots, SplitSlots(ids.size(), test_share, random));
  std::vector<bool> is_test(static_cast<size_t>(ids.size()), false);
  for (const int32_t slot : slots.test) {
    is_test[static_cast<size_t>(slot)] = true;
  }
  TableSplit split;
  split.train = {PathIn(train_directory, files.nodes), PathIn(train_directory, files.edges)};
  split.test = {PathIn(test_directory, files.nodes), PathIn(test_directory, files.edges)};
  split.train_rows = static_cast<int64_t>(slots.train.size());
  split.test_rows = static_cast<int64_t>(slots.test.size());
  DPAR_ASSIGN_OR_RETURN(TableReader nodes, TableReader::Open(files.nodes));
  DPAR_ASSIGN_OR_RETURN(Parts node_parts, Parts::Create(nodes, split.train.nodes, split.test.nodes));
  for (const bool part : is_test) {
    DPAR_ASSIGN_OR_RETURN(const bool found, nodes.Next());
    if (!found) {
      return nodes.Refuse("the file changed while it was read");
    }
    node_parts.Add(part, nodes.record());
  }
  DPAR_RETURN_IF_ERROR(node_parts.Finish());
  DPAR_ASSIGN_OR_RETURN(TableReader edges, TableReader::Open(files.edges));
  DPAR_ASSIGN_OR_RETURN(const size_t source, NeedColumn(edges, schema.source));
  DPAR_ASSIGN_OR_RETURN(const size_t target, NeedColumn(edges, schema.target));
  DPAR_ASSIGN_OR_RETURN(Parts edge_parts, Parts::Create(edges, split.train.edges, split.test.edges));
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const bool found, edges.Next());
    if (!found) {
      break;
    }
    const std::optional<int32_t> from = ids.Find(edges.fields()[source]);
    const std::optional<int32_t> to = ids.Find(edges.fields()[target]);
    if (!from.has_value() || !to.has_value() ||
        is_test[static_cast<size_t>(*from)] != is_test[static_cast<size_t>(*to)]) {
      ++split.edges_removed;
      continue;
    }
    const bool part = is_test[static_cast<size_t>(*from)];
    ++(part ? split.test_edges : split.train_edges);
    edge_parts.Add(part, edges.record());
  }
  DPAR_RETURN_IF_ERROR(edge_parts.Finish());
  return split;
}

}  // namespace dpar
