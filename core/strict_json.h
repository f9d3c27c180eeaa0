// JSON for bytes that somebody else wrote: bounded, without repeated keys, read by type.
#ifndef DPAR_CORE_STRICT_JSON_H_
#define DPAR_CORE_STRICT_JSON_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace dpar {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxJsonBytes = size_t{1} << 20;
// Copying and writing JSON recurse, so a document must not choose how deep. Protocol buffers have the same limit.
inline constexpr int kMaxJsonDepth = 100;

// An object within these limits, without repeated keys at any depth. `what` names the document in errors.
absl::StatusOr<Json> ParseStrictJson(absl::string_view what, absl::string_view text);

// Reads fields of a document by their places ("/predicate/job"). The first that is missing or mistyped is kept in
// status(). Types are checked as far as is needed to read a value; whoever needs one form for each value writes the
// document again and compares.
class JsonFields {
 public:
  // `document` outlives it, and `what` names it in errors.
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
  // As core/message_json writes it.
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
