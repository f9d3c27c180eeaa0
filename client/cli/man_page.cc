#include "client/cli/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace dpar {
namespace {

// As text that troff shows as it is: backslashes and hyphens escaped, and no line that begins as a request.
std::string Escaped(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string escaped = absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}});
    if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) {
      escaped = "\\&" + escaped;
    }
    lines.push_back(escaped);
  }
  return absl::StrJoin(lines, "\n");
}

std::string Title(const CommandNode& node) {
  return node.words.empty() ? "dpar" : absl::StrCat("dpar ", node.Joined(" "));
}

std::string PageName(const CommandNode& node) {
  return node.words.empty() ? "dpar" : absl::StrCat("dpar-", node.Joined("-"));
}

std::string OptionsText(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name(/*positional=*/option->get_positional(), /*all_options=*/true);
    absl::StrAppend(&text, ".TP\n\\fB", Escaped(absl::StrReplaceAll(name, {{",", ", "}})), "\\fR");
    if (option->get_items_expected_max() > 0 && !option->get_positional() && !option->get_type_name().empty()) {
      absl::StrAppend(&text, " \\fI", Escaped(option->get_type_name()), "\\fR");
    }
    absl::StrAppend(
        &text, "\n", Escaped(option->get_description()),
        option->get_default_str().empty() ? "" : absl::StrCat(" (default: ", Escaped(option->get_default_str()), ")"),
        "\n");
  }
  return text;
}

struct Footer {
  std::vector<std::string> examples;
  std::vector<std::string> prose;
};

Footer ReadFooter(const CLI::App& app) {
  Footer footer;
  for (const absl::string_view line : absl::StrSplit(app.get_footer(), '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "  ")) {
      footer.examples.emplace_back(absl::StripLeadingAsciiWhitespace(line));
    } else if (line != "Example:" && line != "A first run:") {
      footer.prose.emplace_back(line);
    }
  }
  return footer;
}

std::string CommandsText(const CommandNode& node) {
  std::string text;
  for (const CLI::App* child : VisibleCommands(*node.app)) {
    absl::StrAppend(&text, ".TP\n\\fB", Escaped(child->get_name()), "\\fR\n", Escaped(child->get_description()), "\n");
  }
  return text;
}

std::string SeeAlso(const CommandNode& node) {
  std::vector<std::string> pages;
  if (!node.words.empty()) {
    CommandNode parent = node;
    parent.words.pop_back();
    pages.push_back(absl::StrCat("\\fB", Escaped(PageName(parent)), "\\fR(1)"));
  }
  for (const CLI::App* child : VisibleCommands(*node.app)) {
    pages.push_back(absl::StrCat("\\fB", Escaped(absl::StrCat(PageName(node), "-", child->get_name())), "\\fR(1)"));
  }
  return absl::StrJoin(pages, ",\n");
}

}  // namespace

std::string ManFileName(const CommandNode& node) { return absl::StrCat(PageName(node), ".1"); }

std::string ManPage(const CLI::App& root, const CommandNode& node) {
  const CLI::App& app = *node.app;
  std::string synopsis = absl::StrCat("\\fB", Escaped(Title(node)), "\\fR");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      absl::StrAppend(&synopsis, option->get_required() ? " \\fI" : " [\\fI", Escaped(option->get_name(true)),
                      option->get_required() ? "\\fR" : "\\fR]");
    }
  }
  absl::StrAppend(&synopsis, VisibleCommands(app).empty() ? "" : " \\fICOMMAND\\fR", " [\\fIOPTIONS\\fR]");
  std::string page =
      absl::StrCat(".TH \"", absl::AsciiStrToUpper(PageName(node)),
                   "\" \"1\" \"\" \"dpar " DPAR_VERSION "\" \"dpar\"\n", ".SH NAME\n", Escaped(PageName(node)), " \\- ",
                   Escaped(app.get_description()), "\n.SH SYNOPSIS\n", synopsis, "\n");
  if (const std::string commands = CommandsText(node); !commands.empty()) {
    absl::StrAppend(&page, ".SH COMMANDS\n", commands);
  }
  absl::StrAppend(&page, ".SH OPTIONS\n", OptionsText(app));
  const Footer footer = ReadFooter(app);
  if (!footer.examples.empty()) {
    absl::StrAppend(&page, ".SH EXAMPLES\n.EX\n", Escaped(absl::StrJoin(footer.examples, "\n")), "\n.EE\n");
  }
  if (!footer.prose.empty()) {
    absl::StrAppend(&page, ".SH NOTES\n", Escaped(absl::StrJoin(footer.prose, "\n")), "\n");
  }
  if (&app != &root) {
    absl::StrAppend(&page,
                    ".SH EXIT STATUS\n0 done, 1 failed, 2 usage, 3 refused by budget, 4 not authorised, 5 unavailable, "
                    "130 interrupted.\n");
  }
  return absl::StrCat(page, ".SH SEE ALSO\n", SeeAlso(node), "\n");
}

}  // namespace dpar
