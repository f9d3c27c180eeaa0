#include "core/infer/onnx_graph.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace dpar {
namespace {

// Wire types of protocol buffers.
constexpr int kVarint = 0;
constexpr int kLengthDelimited = 2;
// Of AttributeProto.type.
constexpr int64_t kIntAttribute = 2;
constexpr int64_t kTextAttribute = 3;

template <typename T>
absl::string_view BytesOf(std::span<const T> entries) {
  return {reinterpret_cast<const char*>(entries.data()), entries.size_bytes()};
}

// Fields of the messages, by their numbers in onnx.proto.
namespace model_proto {
constexpr int kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kMetadata = 14;
}
namespace graph_proto {
constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_proto {
constexpr int kInput = 1, kOutput = 2, kOperation = 4, kAttribute = 5;
}
namespace attribute_proto {
constexpr int kName = 1, kInt = 3, kText = 4, kType = 20;
}
namespace tensor_proto {
constexpr int kDimension = 1, kType = 2, kName = 8, kRawData = 9;
}

ProtoBytes ValueInfo(absl::string_view name, OnnxType type, const std::vector<std::string>& dimensions) {
  ProtoBytes shape;
  for (const std::string& dimension : dimensions) {
    ProtoBytes one;
    int64_t number = 0;
    if (absl::SimpleAtoi(dimension, &number)) {
      one.Int(1, number);
    } else {
      one.Text(2, dimension);
    }
    shape.Bytes(1, one.cord());
  }
  ProtoBytes tensor;
  tensor.Int(1, static_cast<int64_t>(type)).Bytes(2, shape.cord());
  ProtoBytes of_type;
  of_type.Bytes(1, tensor.cord());
  ProtoBytes value;
  value.Text(1, name).Bytes(2, of_type.cord());
  return value;
}

}  // namespace

void ProtoBytes::Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
  cord_.Append(bytes);
}

void ProtoBytes::Tag(int field, int type) { Varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type)); }

ProtoBytes& ProtoBytes::Int(int field, int64_t value) {
  Tag(field, kVarint);
  Varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoBytes& ProtoBytes::Text(int field, absl::string_view text) { return Bytes(field, absl::Cord(text)); }

ProtoBytes& ProtoBytes::Bytes(int field, const absl::Cord& bytes) {
  Tag(field, kLengthDelimited);
  Varint(bytes.size());
  cord_.Append(bytes);
  return *this;
}

ProtoBytes& ProtoBytes::Borrow(int field, absl::string_view bytes) {
  return Bytes(field, absl::MakeCordFromExternal(bytes, [](absl::string_view) {}));
}

OnnxAttribute OnnxAttribute::Int(absl::string_view name, int64_t value) {
  ProtoBytes attribute;
  attribute.Text(attribute_proto::kName, name)
      .Int(attribute_proto::kInt, value)
      .Int(attribute_proto::kType, kIntAttribute);
  return {attribute.cord()};
}

OnnxAttribute OnnxAttribute::Text(absl::string_view name, absl::string_view value) {
  ProtoBytes attribute;
  attribute.Text(attribute_proto::kName, name)
      .Text(attribute_proto::kText, value)
      .Int(attribute_proto::kType, kTextAttribute);
  return {attribute.cord()};
}

void OnnxGraph::AddInput(absl::string_view name, OnnxType type, const std::vector<std::string>& dimensions) {
  ends_.Bytes(graph_proto::kInput, ValueInfo(name, type, dimensions).cord());
}

void OnnxGraph::AddOutput(absl::string_view name, OnnxType type, const std::vector<std::string>& dimensions) {
  ends_.Bytes(graph_proto::kOutput, ValueInfo(name, type, dimensions).cord());
}

std::string OnnxGraph::NewName(absl::string_view name) { return absl::StrCat(name, "_", ++values_); }

std::string OnnxGraph::AddTensor(absl::string_view name, OnnxType type, const std::vector<int64_t>& shape,
                                 ProtoBytes data) {
  std::string unique = NewName(name);
  ProtoBytes tensor;
  for (const int64_t size : shape) {
    tensor.Int(tensor_proto::kDimension, size);
  }
  tensor.Int(tensor_proto::kType, static_cast<int64_t>(type)).Text(tensor_proto::kName, unique);
  absl::Cord bytes = tensor.cord();
  bytes.Append(data.cord());
  tensors_.Bytes(graph_proto::kInitializer, bytes);
  return unique;
}

std::string OnnxGraph::Floats(absl::string_view name, const std::vector<int64_t>& shape,
                              std::span<const float> entries) {
  return AddTensor(name, OnnxType::kFloat, shape, ProtoBytes().Borrow(tensor_proto::kRawData, BytesOf(entries)));
}

std::string OnnxGraph::Doubles(absl::string_view name, const std::vector<int64_t>& shape,
                               const std::vector<double>& entries) {
  return AddTensor(name, OnnxType::kDouble, shape,
                   ProtoBytes().Text(tensor_proto::kRawData, BytesOf(std::span<const double>(entries))));
}

std::string OnnxGraph::Integers(absl::string_view name, const std::vector<int64_t>& entries) {
  return AddTensor(name, OnnxType::kInt64, {static_cast<int64_t>(entries.size())},
                   ProtoBytes().Text(tensor_proto::kRawData, BytesOf(std::span<const int64_t>(entries))));
}

void OnnxGraph::ApplyAs(absl::string_view result, absl::string_view operation, const std::vector<std::string>& inputs,
                        const std::vector<OnnxAttribute>& attributes) {
  ProtoBytes node;
  for (const std::string& input : inputs) {
    node.Text(node_proto::kInput, input);
  }
  node.Text(node_proto::kOutput, result).Text(node_proto::kOperation, operation);
  for (const OnnxAttribute& attribute : attributes) {
    node.Bytes(node_proto::kAttribute, attribute.message);
  }
  nodes_.Bytes(graph_proto::kNode, node.cord());
}

std::string OnnxGraph::Apply(absl::string_view operation, const std::vector<std::string>& inputs,
                             const std::vector<OnnxAttribute>& attributes) {
  std::string result = NewName(operation);
  ApplyAs(result, operation, inputs, attributes);
  return result;
}

std::string OnnxGraph::Cast(const std::string& value, OnnxType type) {
  return Apply("Cast", {value}, {OnnxAttribute::Int("to", static_cast<int64_t>(type))});
}

absl::Cord OnnxGraph::Model(int64_t opset, const std::vector<std::pair<std::string, std::string>>& metadata) const {
  // The versions of the format that came with these opsets.
  const int64_t ir_version = opset >= 16 ? 8 : 7;
  absl::Cord graph = nodes_.cord();
  graph.Append(ProtoBytes().Text(graph_proto::kName, "dpar").cord());
  graph.Append(tensors_.cord());
  graph.Append(ends_.cord());
  ProtoBytes model;
  model.Int(model_proto::kIrVersion, ir_version)
      .Text(model_proto::kProducer, "dpar")
      .Bytes(model_proto::kGraph, graph)
      .Bytes(model_proto::kOpset, ProtoBytes().Text(1, "").Int(2, opset).cord());
  for (const auto& [key, value] : metadata) {
    model.Bytes(model_proto::kMetadata, ProtoBytes().Text(1, key).Text(2, value).cord());
  }
  return model.cord();
}

}  // namespace dpar
