// JSON for bytes that somebody else wrote: bounded, without repeated keys, read by type.
#ifndef DPAR_CORE_STRICT_JSON_H_
#define DPAR_CORE_STRICT_JSON_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace dpar {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxJsonBytes = size_t{1} << 20;
inline constexpr int kMaxJsonDepth = 100;  // since copying and writing recurse; also protobuf's limit

// An object within these limits, without repeated keys at any depth. `what` names the document in errors.
absl::StatusOr<Json> ParseStrictJson(absl::string_view what, absl::string_view text);

// Reads fields by their places ("/predicate/job"); status() keeps the first missing or mistyped one. Types are checked
// only as far as reading needs: to demand one form for each value, write the document again and compare.
class JsonFields {
 public:
  // `document` outlives this object; `what` names it in errors.
  JsonFields(absl::string_view what, const Json& document) : what_(what), document_(document) {}

  [[nodiscard]] const absl::Status& status() const { return status_; }
  [[nodiscard]] bool IsNull(const std::string& place) const;

  template <typename T>
  void Read(const std::string& place, T& value) {
    if (const Json* found = Find(place); found != nullptr && HasType<T>(*found)) {
      found->get_to(value);
    } else {
      Fail(place);
    }
  }
  void ReadMessage(const std::string& place, google::protobuf::Message& message);

 private:
  template <typename T>
  static bool HasType(const Json& json) {
    if constexpr (std::same_as<T, std::string>) {
      return json.is_string();
    } else if constexpr (std::same_as<T, bool>) {
      return json.is_boolean();
    } else if constexpr (std::same_as<T, int64_t>) {
      return json.is_number_integer();
    } else {
      static_assert(std::same_as<T, double>);
      return json.is_number();
    }
  }

  [[nodiscard]] const Json* Find(const std::string& place) const;
  void Fail(const std::string& place);

  std::string what_;
  const Json& document_;
  absl::Status status_;
};

}  // namespace dpar

#endif  // DPAR_CORE_STRICT_JSON_H_
