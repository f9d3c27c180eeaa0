#include "client/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace dpar {
namespace {

constexpr int kNarrowest = 20;

int WidthOf(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col < kNarrowest) {
    return kDefaultWidth;
  }
  return size.ws_col;
}

absl::string_view Code(Colour colour) {
  switch (colour) {
    case Colour::kRed:
      return "31";
    case Colour::kGreen:
      return "32";
    case Colour::kYellow:
      return "33";
    case Colour::kCyan:
      return "36";
    case Colour::kBold:
      return "1";
  }
  return "0";
}

}  // namespace

bool LocaleIsUtf8(const Variables& variables) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto value = variables(name)) {
      const std::string lower = absl::AsciiStrToLower(*value);
      return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
    }
  }
  return false;
}

Terminal DetectTerminal(const Variables& variables) {
  const bool dumb = variables("TERM").value_or("dumb") == "dumb";
  Terminal terminal;
  terminal.in_is_terminal = ::isatty(STDIN_FILENO) == 1;
  terminal.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  terminal.err_is_terminal = ::isatty(STDERR_FILENO) == 1 && !dumb;
  terminal.utf8 = LocaleIsUtf8(variables);
  terminal.colour = !dumb && !variables("NO_COLOR").has_value();
  const int descriptor = terminal.err_is_terminal ? STDERR_FILENO : STDOUT_FILENO;
  terminal.width = [descriptor] { return WidthOf(descriptor); };
  return terminal;
}

std::string Coloured(Colour colour, absl::string_view text, bool enabled) {
  return enabled ? absl::StrCat("\x1b[", Code(colour), "m", text, "\x1b[0m") : std::string(text);
}

}  // namespace dpar
