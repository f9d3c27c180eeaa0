// JSON for bytes that somebody else wrote: bounded, without repeated keys, read by type.
#ifndef DPAR_CORE_CERTIFICATE_STRICT_JSON_H_
#define DPAR_CORE_CERTIFICATE_STRICT_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxJsonBytes = size_t{1} << 20;

// An object without repeated keys at any depth. `what` names the document in errors.
absl::StatusOr<Json> ParseStrictJson(absl::string_view what, absl::string_view text);

// Reads fields of an object by type. The first field that is missing or mistyped is kept in status(), named by its
// path, and everything read after it is empty.
class JsonReader {
 public:
  // `status` collects the first error of this reader and its children; both arguments outlive it.
  JsonReader(const Json& object, std::string path, absl::Status& status);

  [[nodiscard]] JsonReader Object(const std::string& key) const;
  [[nodiscard]] const Json& Array(const std::string& key) const;
  // An object as it is, for a reader of its own.
  [[nodiscard]] const Json& RawObject(const std::string& key) const;
  [[nodiscard]] std::string Text(const std::string& key) const;
  [[nodiscard]] double Number(const std::string& key) const;
  [[nodiscard]] int64_t Integer(const std::string& key) const;
  [[nodiscard]] bool Boolean(const std::string& key) const;
  // Whether the field is there and not null.
  [[nodiscard]] bool Has(const std::string& key) const;

  void Fail(const std::string& key, absl::string_view expected) const;

 private:
  const Json* Find(const std::string& key, bool (*is_type)(const Json&), absl::string_view expected) const;

  const Json& object_;
  std::string path_;
  absl::Status& status_;
};

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_STRICT_JSON_H_
