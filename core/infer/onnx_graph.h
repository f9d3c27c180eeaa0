// The few messages of ONNX that a model needs, written by hand: Debian's libonnx would add a dependency and its
// generated messages to every build for a dozen fields. Numbers and tags are those of onnx.proto.
#ifndef DPAR_CORE_INFER_ONNX_GRAPH_H_
#define DPAR_CORE_INFER_ONNX_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace dpar {

enum class OnnxType { kFloat = 1, kInt64 = 7, kDouble = 11 };

// A message as bytes. Parts are shared and not copied.
class ProtoBytes {
 public:
  ProtoBytes& Int(int field, int64_t value);
  ProtoBytes& Text(int field, absl::string_view text);
  ProtoBytes& Bytes(int field, const absl::Cord& bytes);
  // `bytes` outlives the message.
  ProtoBytes& Borrow(int field, absl::string_view bytes);

  [[nodiscard]] const absl::Cord& cord() const { return cord_; }

 private:
  void Varint(uint64_t value);
  void Tag(int field, int type);

  absl::Cord cord_;
};

// An attribute of a node.
struct OnnxAttribute {
  static OnnxAttribute Int(absl::string_view name, int64_t value);
  static OnnxAttribute Text(absl::string_view name, absl::string_view value);

  absl::Cord message;
};

// Operations in order. Every value has a name, which a number makes unique.
class OnnxGraph {
 public:
  // A dimension is a number, or a name for one that is free.
  void AddInput(absl::string_view name, OnnxType type, const std::vector<std::string>& dimensions);
  void AddOutput(absl::string_view name, OnnxType type, const std::vector<std::string>& dimensions);

  // Names of constants. The floats outlive the graph.
  std::string Floats(absl::string_view name, const std::vector<int64_t>& shape, std::span<const float> entries);
  std::string Doubles(absl::string_view name, const std::vector<int64_t>& shape, const std::vector<double>& entries);
  std::string Integers(absl::string_view name, const std::vector<int64_t>& entries);
  std::string Number(double value) { return Doubles("number", {}, {value}); }

  // The name of the operation's result.
  std::string Apply(absl::string_view operation, const std::vector<std::string>& inputs,
                    const std::vector<OnnxAttribute>& attributes = {});
  // The same under a given name.
  void ApplyAs(absl::string_view result, absl::string_view operation, const std::vector<std::string>& inputs,
               const std::vector<OnnxAttribute>& attributes = {});
  std::string Cast(const std::string& value, OnnxType type);

  // The file's bytes.
  [[nodiscard]] absl::Cord Model(int64_t opset, const std::vector<std::pair<std::string, std::string>>& metadata) const;

 private:
  std::string NewName(absl::string_view name);
  std::string AddTensor(absl::string_view name, OnnxType type, const std::vector<int64_t>& shape, ProtoBytes data);

  ProtoBytes nodes_;
  ProtoBytes tensors_;
  ProtoBytes ends_;
  int values_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CORE_INFER_ONNX_GRAPH_H_
