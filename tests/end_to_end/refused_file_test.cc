// Files that are no graph: refused with the array and the position, to the uploader, and nothing is left behind.
#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using Arrays = std::map<std::string, NpyArray>;

constexpr char kAnyPosition[] = "any";

struct BadFile {
  std::string name;
  // Makes the file from the graph it spoils.
  std::function<std::string(const Graph&)> make;
  // Metadata of the error; empty: not checked, as no array is at fault.
  std::string array;
  // Empty: not checked. kAnyPosition: some number.
  std::string position;
};

std::string Spoiled(const Graph& graph, const std::function<void(Arrays&)>& spoil) {
  Arrays arrays = GraphArrays(graph);
  spoil(arrays);
  return NpzBytes(arrays);
}

// Sets one entry of a numeric array, whatever its type.
void SetEntry(Arrays& arrays, const std::string& name, size_t index, double value) {
  std::visit(
      [&](auto& data) {
        using Entry = typename std::decay_t<decltype(data)>::value_type;
        data.at(index) = static_cast<Entry>(value);
      },
      arrays.at(name).data);
}

// A file like the graph's, with one member replaced by raw bytes (an npy of a kind that no writer of ours makes).
std::string WithRawMember(const Graph& graph, const std::string& member, const std::string& npy) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("raw.npz");
  WriteFile(path, GraphBytes(graph));
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), 0, &error);
  EXPECT_NE(archive, nullptr) << error;
  zip_source_t* source = zip_source_buffer(archive, npy.data(), npy.size(), 0);
  EXPECT_GE(zip_file_add(archive, (member + ".npy").c_str(), source, ZIP_FL_OVERWRITE), 0);
  EXPECT_EQ(zip_close(archive), 0);
  return ReadFile(path);
}

// An npy file of version 1.0.
std::string Npy(const std::string& header, const std::string& data) {
  std::string padded = header;
  while ((10 + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  std::string npy = "\x93NUMPY\x01";
  npy += '\0';
  npy += static_cast<char>(padded.size() & 0xff);
  npy += static_cast<char>(padded.size() >> 8);
  return npy + padded + data;
}

std::string NpyHeader(const std::string& dtype, int64_t length) {
  return absl::StrCat("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (", length, ",), }");
}

std::vector<BadFile> ContainerFaults() {
  return {
      {"not a zip", [](const Graph&) { return std::string(5000, 'x'); }, "", ""},
      {"one byte", [](const Graph&) { return std::string("P"); }, "", ""},
      {"truncated", [](const Graph& graph) { return GraphBytes(graph).substr(0, GraphBytes(graph).size() / 2); }, "",
       ""},
      {"last byte missing",
       [](const Graph& graph) { return GraphBytes(graph).substr(0, GraphBytes(graph).size() - 1); }, "", ""},
      {"object array",
       [](const Graph& graph) {
         return WithRawMember(graph, "labels", Npy(NpyHeader("|O", 120), "\x80\x04\x95" + std::string(500, 'c')));
       },
       "labels", ""},
      {"complex array",
       [](const Graph& graph) {
         return WithRawMember(graph, "attr_data", Npy(NpyHeader("<c16", 120), std::string(120 * 16, '\0')));
       },
       "attr_data", ""},
      {"header that promises a tebibyte",
       [](const Graph& graph) {
         return WithRawMember(graph, "labels", Npy(NpyHeader("<i8", int64_t{1} << 37), std::string(960, '\0')));
       },
       "labels", ""},
      {"array shorter than its header says",
       [](const Graph& graph) {
         return WithRawMember(graph, "labels", Npy(NpyHeader("<i8", 120), std::string(100, '\0')));
       },
       "labels", ""},
      {"no header at all", [](const Graph& graph) { return WithRawMember(graph, "adj_indptr", "not an array"); },
       "adj_indptr", ""},
      {"missing array", [](const Graph& graph) { return Spoiled(graph, [](Arrays& a) { a.erase("labels"); }); },
       "labels", ""},
  };
}

std::vector<BadFile> ContentFaults() {
  const auto set = [](const std::string& name, size_t index, double value) {
    return [=](const Graph& graph) { return Spoiled(graph, [=](Arrays& a) { SetEntry(a, name, index, value); }); };
  };
  return {
      {"feature is not a number", set("attr_data", 7, std::numeric_limits<double>::quiet_NaN()), "attr_data", "7"},
      {"feature is infinite", set("attr_data", 9, std::numeric_limits<double>::infinity()), "attr_data", "9"},
      {"feature column out of range", set("attr_indices", 3, 30), "attr_indices", "3"},
      {"feature column negative", set("attr_indices", 4, -1), "attr_indices", "4"},
      {"neighbour out of range", set("adj_indices", 5, 120), "adj_indices", "5"},
      {"neighbour negative", set("adj_indices", 6, -2), "adj_indices", "6"},
      {"edge offsets go back", set("adj_indptr", 2, 100'000), "adj_indptr", kAnyPosition},
      {"feature offsets go back", set("attr_indptr", 3, -1), "attr_indptr", kAnyPosition},
      {"label below -1", set("labels", 11, -2), "labels", "11"},
      {"label above the declared classes", set("labels", 12, 3), "labels", "12"},
      {"weights that differ", set("adj_data", 1, 2), "adj_data", "1"},
      {"fewer labels than nodes",
       [](const Graph& graph) {
         return Spoiled(graph, [](Arrays& a) {
           std::visit([](auto& data) { data.pop_back(); }, a.at("labels").data);
           --a.at("labels").shape[0];
         });
       },
       "labels", ""},
      {"fewer edge offsets than nodes",
       [](const Graph& graph) {
         return Spoiled(graph, [](Arrays& a) {
           std::visit([](auto& data) { data.pop_back(); }, a.at("adj_indptr").data);
           --a.at("adj_indptr").shape[0];
         });
       },
       "adj_indptr", ""},
      {"columns given as real numbers",
       [](const Graph& graph) {
         return Spoiled(graph, [](Arrays& a) {
           const auto length = static_cast<size_t>(a.at("adj_indices").shape[0]);
           a.at("adj_indices").data = std::vector<double>(length, 0.5);
         });
       },
       "adj_indices", ""},
      {"adjacency is not square", set("adj_shape", 1, 121), "adj_shape", ""},
      {"more nodes than declared",
       [](const Graph&) { return GraphBytes(MakeGraph(7, {.nodes = 121, .classes = 3, .features = 30})); }, "adj_shape",
       ""},
      {"more features than declared",
       [](const Graph&) { return GraphBytes(MakeGraph(7, {.nodes = 120, .classes = 3, .features = 31})); },
       "attr_shape", ""},
  };
}

class RefusedFileTest : public SharedServerTest {
 protected:
  void ExpectRefused(const std::vector<BadFile>& files) {
    const TenantAccess tenant = server().NewTenant();
    const Client owner = server().Owner(tenant);
    const Graph graph = MakeGraph(200);
    for (const BadFile& file : files) {
      SCOPED_TRACE(file.name);
      const std::string bytes = file.make(graph);
      v1::OpenUploadRequest open = OpenRequest(tenant.name, bytes, graph.sizes);
      open.set_dataset_id("refused");
      const auto opened = owner.Call(&v1::DatasetService::Stub::OpenUpload, open);
      ASSERT_THAT(opened.status, IsOk());
      ASSERT_THAT(WriteBytes(owner, opened.value.name(), 0, bytes).status, IsOk());
      const auto answer = Finish(owner, opened.value.name(), bytes, NewRequestId());
      EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_GRAPH));
      ExpectMetadata(answer.status, file);
      ExpectNothingLeft(owner, tenant, opened.value.name());
    }
    // The id was never taken: the same tenant can still give it to a good file.
    const std::string bytes = GraphBytes(graph);
    v1::OpenUploadRequest open = OpenRequest(tenant.name, bytes, graph.sizes);
    open.set_dataset_id("refused");
    EXPECT_THAT(UploadFile(owner, open, bytes).status, IsOk());
  }

 private:
  static void ExpectMetadata(const grpc::Status& status, const BadFile& file) {
    if (!file.array.empty()) {
      EXPECT_EQ(ErrorMetadata(status, "array"), file.array) << status.error_message();
    }
    if (file.position == kAnyPosition) {
      EXPECT_THAT(ErrorMetadata(status, "position"), ::testing::MatchesRegex("[0-9]+"));
    } else if (!file.position.empty()) {
      EXPECT_EQ(ErrorMetadata(status, "position"), file.position) << status.error_message();
    }
  }

  static void ExpectNothingLeft(const Client& owner, const TenantAccess& tenant, const std::string& upload) {
    v1::ListDatasetsRequest list;
    list.set_parent(tenant.name);
    EXPECT_EQ(owner.Call(&v1::DatasetService::Stub::ListDatasets, list).value.datasets_size(), 0);
    v1::GetUploadRequest get;
    get.set_name(upload);
    EXPECT_EQ(owner.Call(&v1::DatasetService::Stub::GetUpload, get).value.state(), v1::Upload::REFUSED);
  }
};

TEST_F(RefusedFileTest, AFileThatIsNoProperContainerIsRefusedAndLeavesNothing) { ExpectRefused(ContainerFaults()); }

TEST_F(RefusedFileTest, AFileWithOneBadEntryIsRefusedWithTheArrayAndThePosition) { ExpectRefused(ContentFaults()); }

TEST_F(RefusedFileTest, DirectedRepeatedAndLoopEdgesAreRepairedAndReported) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  // Three nodes; entries 0->1 twice, 1->1, 1->2 and 2->1.
  const Arrays arrays = {
      {"adj_data", {{5}, std::vector<float>(5, 1)}},
      {"adj_indices", {{5}, std::vector<int64_t>{1, 1, 1, 2, 1}}},
      {"adj_indptr", {{4}, std::vector<int64_t>{0, 2, 4, 5}}},
      {"adj_shape", {{2}, std::vector<int64_t>{3, 3}}},
      {"attr_data", {{4}, std::vector<float>{1, 0, 2, 3}}},
      {"attr_indices", {{4}, std::vector<int64_t>{0, 1, 1, 0}}},
      {"attr_indptr", {{4}, std::vector<int64_t>{0, 2, 3, 4}}},
      {"attr_shape", {{2}, std::vector<int64_t>{3, 2}}},
      {"labels", {{3}, std::vector<int64_t>{0, -1, 1}}},
  };
  const std::string bytes = NpzBytes(arrays);
  const auto answer = UploadFile(owner, OpenRequest(tenant.name, bytes, {3, 2, 2}), bytes);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.value.report().edge_count(), 2);
  EXPECT_EQ(answer.value.report().edges_symmetrised(), 1);
  EXPECT_EQ(answer.value.report().duplicates_merged(), 1);
  EXPECT_EQ(answer.value.report().self_loops_dropped(), 1);
  EXPECT_EQ(answer.value.report().unlabelled_nodes(), 1);
  EXPECT_EQ(answer.value.report().zero_features_dropped(), 1);
}

}  // namespace
}  // namespace dpar::e2e
