#ifndef DPAR_CORE_PLAIN_TEXT_H_
#define DPAR_CORE_PLAIN_TEXT_H_

#include "absl/strings/string_view.h"

namespace dpar {

// Whether people can read it as it is: without control characters, and without those that turn the direction of what
// follows (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), which make a text look like another.
bool IsPlainText(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_CORE_PLAIN_TEXT_H_
