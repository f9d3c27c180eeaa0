// C++ and CMake sources as text: just enough reading to check rules about them.
#ifndef DPAR_TESTS_TIDY_SOURCE_TEXT_H_
#define DPAR_TESTS_TIDY_SOURCE_TEXT_H_

#include <string>
#include <vector>

namespace dpar::tidy {

// One #include of a file.
struct Include {
  int line = 0;  // from 1
  std::string path;
};

// The includes of a C++ file, quoted or in angle brackets, outside comments.
std::vector<Include> FindIncludes(const std::string& content);

// The file with comments and the insides of string and character literals blanked, line by line.
std::vector<std::string> CodeLines(const std::string& content);

// The file as it is, line by line.
std::vector<std::string> SplitLines(const std::string& content);

// A function that is defined in the file; one inside another, such as a lambda, belongs to the outer one.
struct Function {
  int line = 0;   // from 1: where its declaration begins
  int lines = 0;  // up to its closing brace
};
std::vector<Function> FindFunctions(const std::string& content);

// One call of dpar_library, dpar_binary or dpar_test in a CMakeLists.txt.
struct TargetCall {
  int line = 0;         // from 1
  std::string command;  // "dpar_library", ...
  std::string name;
  std::vector<std::string> arguments;  // after the name
};
std::vector<TargetCall> FindTargets(const std::string& content);

}  // namespace dpar::tidy

#endif  // DPAR_TESTS_TIDY_SOURCE_TEXT_H_
