// What the streams are: how wide, whether they can be redrawn, which characters and colours they take.
#ifndef DPAR_CLIENT_CLI_TERMINAL_H_
#define DPAR_CLIENT_CLI_TERMINAL_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace dpar {

// The value of an environment variable; nothing when it is unset or empty.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

inline constexpr int kDefaultWidth = 80;

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;  // and can redraw a line
  bool utf8 = false;
  bool colour = false;  // on streams that are terminals
  // Columns now; asked again for every line, because windows are resized.
  std::function<int()> width = [] { return kDefaultWidth; };
};

// Looks at stdout, stderr, TERM, NO_COLOR and the locale variables.
Terminal DetectTerminal(const Variables& variables);

// Whether the locale variables (LC_ALL, then LC_CTYPE, then LANG) name UTF-8.
bool LocaleIsUtf8(const Variables& variables);

enum class Colour { kRed, kGreen, kYellow, kCyan, kBold };
// `text` in that colour, or as it is when `enabled` is false.
std::string Coloured(Colour colour, absl::string_view text, bool enabled);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TERMINAL_H_
