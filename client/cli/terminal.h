#ifndef DPAR_CLIENT_CLI_TERMINAL_H_
#define DPAR_CLIENT_CLI_TERMINAL_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "client/sdk/variables.h"

namespace dpar {

inline constexpr int kDefaultWidth = 80;

struct Terminal {
  bool in_is_terminal = false;  // somebody can be asked
  bool out_is_terminal = false;
  bool err_is_terminal = false;  // and can redraw a line
  bool utf8 = false;
  bool colour = false;  // on streams that are terminals
  // Columns now; asked again for every line, because windows are resized.
  std::function<int()> width = [] { return kDefaultWidth; };
};

// Looks at stdin, stdout, stderr, TERM, NO_COLOR and the locale variables.
Terminal DetectTerminal(const Variables& variables);

// Whether the locale variables (LC_ALL, then LC_CTYPE, then LANG) name UTF-8.
bool LocaleIsUtf8(const Variables& variables);

enum class Colour { kRed, kGreen, kYellow, kCyan, kBold };
std::string Coloured(Colour colour, absl::string_view text, bool enabled);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TERMINAL_H_
