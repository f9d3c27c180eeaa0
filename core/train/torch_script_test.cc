#include "core/train/torch_script.h"

#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/infer/edge_inputs.h"
#include "core/infer/predict.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;

constexpr int64_t kFeatures = 7;
constexpr int64_t kClasses = 3;
constexpr int64_t kRows = 200;

std::vector<float> RandomEntries(int64_t count, FixedRandom& random) {
  std::vector<float> entries;
  for (int64_t i = 0; i < count; ++i) {
    entries.push_back(static_cast<float>(4 * UniformReal(random) - 2));
  }
  return entries;
}

Model RandomModel(v1::Transform transform, bool has_center, int64_t hidden_size, FixedRandom& random) {
  Model model;
  model.transform = transform;
  model.feature_count = kFeatures;
  model.class_count = kClasses;
  model.hidden_size = hidden_size;
  model.weights = RandomEntries((kFeatures + 1) * model.width(), random);
  model.output_weights = RandomEntries(hidden_size * kClasses, random);
  for (int64_t i = 0; has_center && i < kFeatures; ++i) {
    model.center.push_back(static_cast<float>(UniformReal(random) / 4));
  }
  model.logit_noise = 0.5;
  model.plan = R"({"method":"FEATURES"})";
  return model;
}

std::vector<Model> AllKinds() {
  FixedRandom random(1);
  std::vector<Model> models;
  for (const int64_t hidden_size : {0, 4}) {
    models.push_back(RandomModel(v1::RAW, false, hidden_size, random));
    for (const bool has_center : {false, true}) {
      models.push_back(RandomModel(v1::UNIT, has_center, hidden_size, random));
      models.push_back(RandomModel(v1::SQRT_UNIT, has_center, hidden_size, random));
    }
  }
  return models;
}

// Rows without edges: empty ones, ones with negative entries, and at the end ones with numbers that are not finite,
// very large and very small.
Graph RandomRows(FixedRandom& random) {
  Graph graph;
  graph.sizes = {kRows, kFeatures, kClasses};
  graph.edge_offsets.assign(kRows + 1, 0);
  graph.labels.assign(kRows, kUnlabelled);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> odd = {std::nanf(""), infinity, -infinity, 1e-38F, 1e-45F};
  for (int64_t row = 0; row < kRows; ++row) {
    for (int32_t column = 0; row > 0 && column < kFeatures; ++column) {
      if (UniformBelow(random, 2) == 0) {
        graph.features.columns.push_back(column);
        const bool is_odd = row >= kRows - 20 && UniformBelow(random, 2) == 0;
        graph.features.values.push_back(is_odd ? odd[UniformBelow(random, odd.size())]
                                               : static_cast<float>(3 * UniformReal(random) - 1));
      }
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
  }
  return graph;
}

// The rows as forward(x) takes them, row-major.
std::vector<float> Dense(const Graph& graph) {
  std::vector<float> dense(static_cast<size_t>(graph.sizes.node_count * kFeatures), 0);
  const SparseRowsView rows = graph.features;
  for (int64_t row = 0; row < rows.row_count(); ++row) {
    for (size_t i = 0; i < rows.row_columns(row).size(); ++i) {
      dense[static_cast<size_t>(row * kFeatures + rows.row_columns(row)[i])] = rows.row_values(row)[i];
    }
  }
  return dense;
}

at::Tensor Forward(const std::string& path, std::vector<float> dense) {
  torch::jit::Module module = torch::jit::load(path);
  const auto rows = static_cast<int64_t>(dense.size()) / kFeatures;
  const at::Tensor x = at::from_blob(dense.data(), {rows, kFeatures}, at::kFloat);
  return module.forward({x}).toTensor();
}

void ExpectSamePredictions(const Model& model, const Graph& graph, const at::Tensor& logits) {
  ASSERT_EQ(logits.scalar_type(), at::kFloat);
  ASSERT_EQ(logits.sizes(), at::IntArrayRef({graph.sizes.node_count, kClasses}));
  const auto predictions = Predict(model, graph, {.propagation = Propagation::kNone});
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  const auto [probabilities, labels] = at::max(at::softmax(logits, 1), 1);
  for (int64_t row = 0; row < graph.sizes.node_count; ++row) {
    const Prediction& expected = (*predictions)[static_cast<size_t>(row)];
    ASSERT_EQ(labels[row].item<int64_t>(), expected.label) << row;
    ASSERT_NEAR(probabilities[row].item<float>(), expected.probability, 1e-5) << row;
  }
}

TEST(TorchScriptTest, GivesTheLogitsOfPredictionForRowsAsTheyWereUploaded) {
  FixedRandom random(2);
  const Graph graph = RandomRows(random);
  for (const Model& model : AllKinds()) {
    SCOPED_TRACE(absl::StrCat(ModelHeader(model), " hidden ", model.hidden_size, " center ", model.center.size()));
    const std::string path = TestPath("model.pt");
    ASSERT_TRUE(WriteTorchScript(path, model).ok());
    ExpectSamePredictions(model, graph, Forward(path, Dense(graph)));
  }
}

TEST(TorchScriptTest, GivesTheLogitsOfPredictionNextToTheCenter) {
  FixedRandom random(3);
  Model model = RandomModel(v1::UNIT, true, 0, random);
  Graph graph;
  graph.sizes = {60, kFeatures, kClasses};
  graph.edge_offsets.assign(61, 0);
  double square = 0;
  for (const float entry : model.center) {
    square += static_cast<double>(entry) * static_cast<double>(entry);
  }
  for (float& entry : model.center) {
    entry = static_cast<float>(static_cast<double>(entry) / std::sqrt(square));
  }
  for (int row = 0; row < 60; ++row) {
    for (int32_t column = 0; column < kFeatures; ++column) {
      const double away = std::pow(10, -row / 12.0) * (UniformReal(random) - 0.5);
      graph.features.columns.push_back(column);
      graph.features.values.push_back(
          static_cast<float>(3 * (static_cast<double>(model.center[static_cast<size_t>(column)]) + away)));
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
  }
  const std::string path = TestPath("near.pt");
  ASSERT_TRUE(WriteTorchScript(path, model).ok());
  ExpectSamePredictions(model, graph, Forward(path, Dense(graph)));
}

TEST(TorchScriptTest, LeavesTheBiasAloneWhereThereIsNothingElse) {
  Model model;
  model.feature_count = 1;
  model.class_count = 2;
  model.weights = {5, 6, 2, -3};
  for (const std::vector<float>& center : {std::vector<float>(), std::vector<float>{0}}) {
    model.center = center;
    const std::string path = TestPath("bias.pt");
    ASSERT_TRUE(WriteTorchScript(path, model).ok());
    torch::jit::Module module = torch::jit::load(path);
    const at::Tensor logits = module.forward({at::full({1, 1}, 0.0F)}).toTensor();
    EXPECT_NEAR(logits[0][0].item<float>(), 0.2, 1e-7);
    EXPECT_NEAR(logits[0][1].item<float>(), -0.3, 1e-7);
  }
}

TEST(TorchScriptTest, CarriesTheHeaderAsMetadata) {
  FixedRandom random(4);
  const Model model = RandomModel(v1::UNIT, true, 4, random);
  const std::string path = TestPath("metadata.pt");
  ASSERT_TRUE(WriteTorchScript(path, model).ok());
  torch::jit::ExtraFilesMap extra = {{"metadata.json", ""}};
  torch::jit::load(path, c10::nullopt, extra);
  EXPECT_EQ(
      extra["metadata.json"],
      R"({"format":1,"transform":"UNIT","logit_noise":0.5,"share_noise":0.0,"reads":"features","hops":0,"plan":{"method":"FEATURES"}})");
}

TEST(TorchScriptTest, WritesTheSameBytesWhateverTheName) {
  for (const Model& model : AllKinds()) {
    ASSERT_TRUE(WriteTorchScript(TestPath("one.pt"), model).ok());
    ASSERT_TRUE(WriteTorchScript(TestPath("another.pt"), model).ok());
    ASSERT_EQ(ReadBytes(TestPath("one.pt")), ReadBytes(TestPath("another.pt")));
  }
}

int64_t CountFiles(const std::filesystem::path& directory) {
  const std::filesystem::directory_iterator files(directory);
  return std::distance(begin(files), end(files));
}

TEST(TorchScriptTest, LeavesNothingBesideTheFile) {
  FixedRandom random(5);
  const std::filesystem::path directory = TestPath("alone");
  std::filesystem::create_directory(directory);
  ASSERT_TRUE(WriteTorchScript(directory / "model.pt", RandomModel(v1::RAW, false, 0, random)).ok());
  ASSERT_TRUE(WriteTorchScript(directory / "model.pt", RandomModel(v1::UNIT, false, 0, random)).ok());
  EXPECT_EQ(CountFiles(directory), 1);
}

TEST(TorchScriptTest, SaysThatAFileCannotBeWrittenAndLeavesNothing) {
  FixedRandom random(6);
  const Model model = RandomModel(v1::UNIT, false, 0, random);
  EXPECT_EQ(Summary(WriteTorchScript("/nonexistent/model.pt", model)), "UNAVAILABLE SERVER_UNAVAILABLE");
  const std::filesystem::path directory = TestPath("taken");
  std::filesystem::create_directories(directory / "model.pt" / "in the way");
  EXPECT_EQ(Summary(WriteTorchScript(directory / "model.pt", model)), "UNAVAILABLE SERVER_UNAVAILABLE");
  EXPECT_EQ(CountFiles(directory), 1);
}

TEST(TorchScriptTest, RefusesAModelThatIsNotValid) {
  FixedRandom random(7);
  Model model = RandomModel(v1::UNIT, false, 0, random);
  model.weights.pop_back();
  EXPECT_EQ(Summary(WriteTorchScript(TestPath("bad.pt"), model)), "INVALID_ARGUMENT INVALID_FIELD field=model");
  EXPECT_FALSE(std::filesystem::exists(TestPath("bad.pt")));
}

// Loads a module, feeds it the floats of one file, and writes the logits to another; numpy is not needed.
constexpr char kLoadInPython[] = R"(
import array, sys, torch
module_path, rows_path, logits_path, features = sys.argv[1:5]
extra = {"metadata.json": ""}
module = torch.jit.load(module_path, _extra_files=extra)
rows = array.array("f")
with open(rows_path, "rb") as file:
    rows.frombytes(file.read())
x = torch.tensor(rows.tolist(), dtype=torch.float32).reshape(-1, int(features))
with torch.no_grad():
    logits = module(x)
assert b'"format":1' in extra["metadata.json"], extra
with open(logits_path, "wb") as file:
    file.write(array.array("f", logits.flatten().tolist()).tobytes())
)";

TEST(TorchScriptTest, LoadsInPythonWithTheSameLogits) {
  if (std::system("/usr/bin/python3 -c 'import torch' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch; Debian has it in python3-torch";
  }
  FixedRandom random(8);
  const Graph graph = RandomRows(random);
  const std::vector<float> dense = Dense(graph);
  WriteBytes(TestPath("load.py"), kLoadInPython);
  WriteBytes(TestPath("rows"), testing::BytesOf(dense));
  for (const Model& model : {RandomModel(v1::SQRT_UNIT, true, 4, random), RandomModel(v1::UNIT, false, 0, random),
                             RandomModel(v1::RAW, false, 0, random)}) {
    ASSERT_TRUE(WriteTorchScript(TestPath("model.pt"), model).ok());
    const std::string command = absl::StrCat("/usr/bin/python3 '", TestPath("load.py"), "' '", TestPath("model.pt"),
                                             "' '", TestPath("rows"), "' '", TestPath("logits"), "' ", kFeatures);
    ASSERT_EQ(std::system(command.c_str()), 0);
    const at::Tensor expected = Forward(TestPath("model.pt"), dense);
    std::string bytes = ReadBytes(TestPath("logits"));
    ASSERT_EQ(bytes.size(), static_cast<size_t>(expected.numel()) * sizeof(float));
    const at::Tensor logits = at::from_blob(bytes.data(), expected.sizes(), at::kFloat);
    EXPECT_LE((logits - expected).abs().max().item<float>(), 1e-5F);
  }
}

// A ring of all nodes, by which models that read edges are tried.
void Link(Graph& graph) {
  graph.edge_offsets = {0};
  for (int32_t node = 0; node < kRows; ++node) {
    const auto before = static_cast<int32_t>((node + kRows - 1) % kRows);
    const auto after = static_cast<int32_t>((node + 1) % kRows);
    graph.neighbours.push_back(std::min(before, after));
    graph.neighbours.push_back(std::max(before, after));
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
  }
}

TEST(TorchScriptTest, ModelsThatReadEdgesTakeThemBesideTheRows) {
  FixedRandom random(3);
  Graph graph = RandomRows(random);
  Link(graph);
  Model mean = RandomModel(v1::SQRT_UNIT, false, 4, random);
  mean.reads = ModelInputs::kNeighbourMean;
  mean.weights = RandomEntries((2 * kFeatures + 1) * 4, random);
  Model hops = RandomModel(v1::UNIT, false, 4, random);
  hops.reads = ModelInputs::kHops;
  hops.hops = 2;
  hops.encoder_size = 5;
  hops.encoder_weights = RandomEntries((kFeatures + 1) * 5, random);
  hops.weights = RandomEntries((3 * 5 + 1) * 4, random);
  std::vector<int64_t> ends;
  for (int64_t node = 0; node < kRows; ++node) {
    ends.insert(ends.end(), 2, node);
  }
  ends.insert(ends.end(), graph.neighbours.begin(), graph.neighbours.end());
  const at::Tensor edges = at::from_blob(ends.data(), {2, 2 * kRows}, at::kLong);
  std::vector<float> dense = Dense(graph);
  const at::Tensor x = at::from_blob(dense.data(), {kRows, kFeatures}, at::kFloat);
  const std::string path = TestPath("edges.pt");
  for (const Model& model : {mean, hops}) {
    ASSERT_TRUE(WriteTorchScript(path, model).ok());
    const at::Tensor logits = torch::jit::load(path).forward({x, edges}).toTensor();
    const NodeMatrix expected = GraphLogits(model, graph, 1, [] { return true; }).value();
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kClasses; ++column) {
        const double wanted = static_cast<double>(expected(row, column));
        EXPECT_NEAR(logits[row][column].item<double>(), wanted, 1e-4 * (1 + std::fabs(wanted))) << row;
      }
    }
  }
}

}  // namespace
}  // namespace dpar
