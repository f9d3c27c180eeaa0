#include "tests/tidy/source_text.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>

namespace dpar::tidy {
namespace {

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Walks once over a source and blanks what is not code, keeping line breaks so that line numbers stay.
class Blanker {
 public:
  Blanker(const std::string& content, bool blank_literals) : text_(content), blank_literals_(blank_literals) {}

  std::string Run() {
    while (at_ < text_.size()) {
      if (text_.compare(at_, 2, "//") == 0) {
        Blank(std::min(text_.find('\n', at_), text_.size()), true);
      } else if (text_.compare(at_, 2, "/*") == 0) {
        Blank(After("*/", at_ + 2), true);
      } else if (text_.compare(at_, 2, "R\"") == 0 && !FollowsWord()) {
        BlankRawString();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !FollowsWord())) {
        BlankLiteral(text_[at_]);
      } else {
        ++at_;
      }
    }
    return text_;
  }

 private:
  // True after a letter or digit: then a quote is a digit separator, and R the end of a name.
  [[nodiscard]] bool FollowsWord() const { return at_ > 0 && IsWordCharacter(text_[at_ - 1]); }

  [[nodiscard]] size_t After(const std::string& end, size_t from) const {
    const size_t found = text_.find(end, from);
    return found == std::string::npos ? text_.size() : found + end.size();
  }

  void Blank(size_t end, bool always) {
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n' && (always || blank_literals_)) {
        text_[at_] = ' ';
      }
    }
  }

  void BlankRawString() {
    const size_t open = text_.find('(', at_);
    if (open == std::string::npos) {
      at_ = text_.size();
      return;
    }
    const std::string delimiter = text_.substr(at_ + 2, open - at_ - 2);
    Blank(After(")" + delimiter + "\"", open), false);
  }

  void BlankLiteral(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2U : 1U;
    }
    Blank(std::min(end + 1, text_.size()), false);
  }

  std::string text_;
  bool blank_literals_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::string> SplitLines(const std::string& content) {
  std::vector<std::string> lines;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> CodeLines(const std::string& content) { return SplitLines(Blanker(content, true).Run()); }

std::vector<Include> FindIncludes(const std::string& content) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : SplitLines(Blanker(content, false).Run())) {
    ++number;
    std::smatch match;
    if (line.find("include") != std::string::npos && std::regex_search(line, match, pattern)) {
      includes.push_back({number, match[1].str()});
    }
  }
  return includes;
}

std::vector<TargetCall> FindTargets(const std::string& content) {
  std::string text;
  for (const std::string& line : SplitLines(content)) {
    text += line.substr(0, line.find('#')) + "\n";
  }
  std::vector<TargetCall> calls;
  for (const std::string command : {"dpar_library", "dpar_binary", "dpar_test"}) {
    for (size_t at = text.find(command + "("); at != std::string::npos; at = text.find(command + "(", at + 1)) {
      const size_t open = at + command.size() + 1;
      std::istringstream words(text.substr(open, text.find(')', open) - open));
      TargetCall call;
      call.line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
      call.command = command;
      words >> call.name;
      for (std::string word; words >> word;) {
        call.arguments.push_back(word);
      }
      calls.push_back(call);
    }
  }
  return calls;
}

}  // namespace dpar::tidy
