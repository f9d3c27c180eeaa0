#ifndef DPAR_CORE_TABLE_UTF8_H_
#define DPAR_CORE_TABLE_UTF8_H_

#include "absl/strings/string_view.h"

namespace dpar {

// Well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_UTF8_H_
