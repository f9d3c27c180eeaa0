// Code that stands in the documentation, for tests that run it.
#ifndef DPAR_TESTS_END_TO_END_DOCUMENT_H_
#define DPAR_TESTS_END_TO_END_DOCUMENT_H_

#include <cstdlib>
#include <string>

#include "tests/end_to_end/process.h"

namespace dpar::e2e {

// A file of the source tree.
inline std::string ReadSource(const std::string& path) {
  const char* directory = std::getenv("DPAR_SOURCE_DIR");
  return ReadFile(std::string(directory == nullptr ? "." : directory) + "/" + path);
}

// The first fenced block of this language after `mark`; empty when there is none.
inline std::string CodeBlock(const std::string& document, const std::string& mark, const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const size_t marked = document.find(mark);
  const size_t begin = marked == std::string::npos ? marked : document.find(fence, marked);
  const size_t end = begin == std::string::npos ? begin : document.find("```", begin + fence.size());
  return end == std::string::npos ? "" : document.substr(begin + fence.size(), end - begin - fence.size());
}

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_DOCUMENT_H_
