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

// Finds functions by their braces, in code without comments, literals and preprocessor lines.
class FunctionFinder {
 public:
  explicit FunctionFinder(const std::string& code) : code_(code) {}

  std::vector<Function> Run() {
    for (size_t at = 0; at < code_.size(); ++at) {
      if (code_[at] == '\n') {
        ++line_;
      }
      parentheses_ += code_[at] == '(' ? 1 : code_[at] == ')' ? -1 : 0;
      if (parentheses_ > 0) {
        // Braces of a default argument or of a lambda that is an argument: they open and close inside.
        continue;
      }
      if (code_[at] == '{') {
        Open(code_.substr(head_, at - head_));
        head_ = at + 1;
      } else if (code_[at] == '}') {
        Close();
        head_ = at + 1;
      } else if (code_[at] == ';') {
        head_ = at + 1;
      }
    }
    return functions_;
  }

 private:
  // What stands before an opening brace tells what it opens.
  void Open(const std::string& head) {
    static const std::regex label(R"(\b(public|private|protected)\s*:)");
    static const std::regex no_function(
        R"(^\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|extern|class|struct|union|enum)\b)");
    static const std::regex operator_name(R"(operator[^\w\s(]+)");
    const std::string declaration = std::regex_replace(head, label, "");
    const std::string plain = std::regex_replace(declaration, operator_name, "operator");
    const bool is_scope = std::regex_search(plain, no_function);
    if (function_depth_ == 0 && !is_scope && plain.find('(') != std::string::npos &&
        !AssignsOutsideParentheses(plain)) {
      function_depth_ = depth_ + 1;
      const size_t begin = declaration.find_first_not_of(" \n");
      first_line_ = line_ - static_cast<int>(std::count(declaration.begin() + static_cast<ptrdiff_t>(begin),
                                                        declaration.end(), '\n'));
    }
    ++depth_;
  }

  void Close() {
    if (function_depth_ != 0 && depth_ == function_depth_) {
      functions_.push_back({first_line_, line_ - first_line_ + 1});
      function_depth_ = 0;
    }
    --depth_;
  }

  static bool AssignsOutsideParentheses(const std::string& text) {
    int depth = 0;
    for (const char c : text) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == '=' && depth == 0) {
        return true;
      }
    }
    return false;
  }

  const std::string& code_;
  std::vector<Function> functions_;
  size_t head_ = 0;  // where the text before the next brace begins
  int line_ = 1;
  int parentheses_ = 0;     // that are open
  int depth_ = 0;           // of braces
  int function_depth_ = 0;  // at which the function ends that is being read; 0 outside of one
  int first_line_ = 0;      // of that function
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

std::vector<Function> FindFunctions(const std::string& content) {
  std::string code;
  bool preprocessor = false;  // a directive goes on after a backslash
  for (const std::string& line : CodeLines(content)) {
    const size_t first = line.find_first_not_of(' ');
    preprocessor = preprocessor || (first != std::string::npos && line[first] == '#');
    code += preprocessor ? "\n" : line + "\n";
    preprocessor = preprocessor && line.ends_with('\\');
  }
  return FunctionFinder(code).Run();
}

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
