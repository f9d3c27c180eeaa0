#ifndef DPAR_CLIENT_SDK_VARIABLES_H_
#define DPAR_CLIENT_SDK_VARIABLES_H_

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace dpar {

// The value of an environment variable; nothing when it is unset or empty. Tests pass their own.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

inline std::optional<std::string> ProcessVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_VARIABLES_H_
